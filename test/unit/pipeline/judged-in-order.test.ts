import { expect, test } from 'vitest'
import type { Judgement } from '../../../src/message/judgement.ts'
import { destinationOf, type Stage, stage, taken, TestRecord } from './stage.ts'

/** Tests of messages that are judged when they leave their queue, while others come. */

function content(messageId: string) {
  const body = { type: 'track', event: 'e', userId: 'u', messageId }
  return { key: Buffer.from('u'), value: Buffer.from(JSON.stringify(body)) }
}

/** Hands in a message that was pulled from its queue. */
function pull(
  { pipeline }: Stage,
  messageId: string,
  offset: number,
  settings: Partial<TestRecord> = {},
): TestRecord {
  const headers = {
    'source-id': 'shop',
    'destination-id': 'crm',
    'message-id': messageId,
    'message-type': 'track',
    'first-seen': '0',
    origin: `events/2/${offset}`,
    attempts: '0',
    rung: '0',
    'expires-at': '0',
  }
  const record = new TestRecord('waiting', offset, settings)
  pipeline.acceptWaiting(record, { ...content(messageId), headers }, 'fresh')
  return record
}

function track({ pipeline }: Stage, messageId: string): void {
  pipeline.accept(new TestRecord('events', 9), { ...content(messageId), headers: { 'source-id': 'shop' } })
}

/** The ids of the messages under way. */
function underWay(all: Stage): string[] {
  return all.bodies().map((body) => JSON.parse(body).messageId)
}

/** A judge that answers when the test says so, in any order. */
function open() {
  const judgements: PromiseWithResolvers<Judgement>[] = []
  const all = stage({
    sources: { shop: {} },
    destinations: [destinationOf('crm', { sources: ['shop'], maxInFlight: 1 })],
    needsJudging: () => true,
    judge() {
      const judgement = Promise.withResolvers<Judgement>()
      judgements.push(judgement)
      return judgement.promise
    },
  })
  return { all, judgements }
}

test('they are sent in their order, whichever judgement comes first, and before those that came later', async () => {
  const { all, judgements } = open()
  for (const [offset, id] of ['m1', 'm2', 'm3'].entries()) pull(all, id, offset)
  track(all, 'm4')
  await all.settle()
  judgements[2]?.resolve({ kind: 'send' })
  judgements[1]?.resolve({ kind: 'suppressed' })
  await all.settle()
  expect(underWay(all)).toEqual([])
  judgements[0]?.resolve({ kind: 'send' })
  await all.settle()
  const sent: string[] = []
  while (all.posted.length > 0) {
    sent.push(...underWay(all))
    await all.answer(taken)
  }
  expect(sent).toEqual(['m1', 'm3', 'm4'])
  expect(all.pipeline.held).toEqual({ records: 0, bytes: 0 })
})

test('they are left to the next owner, if the worker stops or the unit is lost meanwhile', async () => {
  const { all, judgements } = open()
  const [first, second] = [pull(all, 'm1', 1), pull(all, 'm2', 2, { partition: 3 })]
  judgements[1]?.resolve({ kind: 'send' })
  await all.settle()
  second.isAbandoned = true
  const drained = all.pipeline.drain()
  judgements[0]?.resolve({ kind: 'send' })
  await drained
  expect([first, second].map(({ givenBack, settled }) => [givenBack, settled])).toEqual([
    [1, 0],
    [1, 0],
  ])
  expect(all.bodies()).toEqual([])
})
