import { expect, test } from 'vitest'
import type { Judgement } from '../../../src/message/judgement.ts'
import { destinationOf, type Stage, stage, taken, TestRecord } from './stage.ts'

/** Tests of messages that are judged when they leave their queue, while others come. */

function content(messageId: string) {
  const body = { type: 'track', event: 'e', userId: 'u', messageId }
  return { key: Buffer.from('u'), value: Buffer.from(JSON.stringify(body)) }
}

/** Hands in a message that was pulled from its queue. `more`: further headers. */
function pull(
  { pipeline }: Stage,
  messageId: string,
  offset: number,
  { more = {}, ...settings }: Partial<TestRecord> & { more?: Readonly<Record<string, string>> } = {},
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
    ...more,
  }
  const record = new TestRecord('waiting', offset, settings)
  pipeline.acceptWaiting(record, { ...content(messageId), headers }, 'fresh')
  return record
}

/** Returns the headers of a message with a value of a property. */
function valueOf(since: string): Readonly<Record<string, string>> {
  return { 'message-type': 'identify', property: '["u","space","plan"]', since }
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

test('values that were queued in another order are judged, and the newest one is sent and stays', async () => {
  const judged: string[] = []
  const all = stage({
    sources: { shop: {} },
    destinations: [destinationOf('crm', { sources: ['shop'], maxInFlight: 1 })],
    needsJudging: () => true,
    async judge({ property }) {
      judged.push(String(property?.since))
      return { kind: property?.since === 'v2' ? 'send' : 'superseded' }
    },
  })
  track(all, 'before')
  await all.settle()
  // An owner that stopped put the newer one at the front of the queue.
  const records = [
    pull(all, 'newer', 1, { more: valueOf('v2') }),
    pull(all, 'older', 2, { more: valueOf('v1') }),
  ]
  await all.settle()
  const sent: string[] = []
  while (all.posted.length > 0) {
    sent.push(...underWay(all))
    await all.answer(taken)
  }
  expect(sent).toEqual(['before', 'newer'])
  expect(judged).toEqual(['v2', 'v1'])
  expect(records.map(({ settled }) => settled)).toEqual([1, 1])
})
