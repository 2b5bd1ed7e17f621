import { expect, test } from 'vitest'
import type { Judgement } from '../../../src/message/judgement.ts'
import type { PipelineOptions } from '../../../src/pipeline/pipeline-ports.ts'
import { roomyBulkhead } from '../../support/bulkhead.ts'
import { until } from '../../support/until.ts'
import { destinationOf, type Stage, stage, taken, TestRecord } from './stage.ts'

/** Tests of a message whose user is deleted while it waits in its lane. */

const mayBeDeleted: PipelineOptions['mayBeDeleted'] = ({ userId }, unit) => userId === 'u' && unit === 2
const judge = async (): Promise<Judgement> => ({ kind: 'suppressed' })
const one = [destinationOf('crm', { maxInFlight: 1 })]

test('it is not sent after the delete, and what comes behind it is', async () => {
  let deletions = 1
  const all = stage({ destinations: one, mayBeDeleted, deletionsOf: () => deletions, judge })
  all.identify('w1', { userId: 'w' })
  const late = all.identify('v1')
  all.identify('w2', { userId: 'w' })
  expect(all.bodies()).toEqual(['w1'])
  deletions = 2
  await all.answer(taken)
  expect([late.settled, all.told]).toEqual([1, ['delivered crm w1', 'suppressed crm v1']])
  expect(all.bodies()).toEqual(['w2'])
  await all.answer(taken)
  expect(all.pipeline.held).toEqual({ records: 0, bytes: 0 })
})

test('it is sent if it came after the deletion, and is asked about once', async () => {
  let deletions = 1
  const all = stage({ destinations: one, mayBeDeleted, deletionsOf: () => deletions })
  all.identify('w1', { userId: 'w' })
  all.identify('v1')
  deletions = 2
  await all.answer(taken)
  expect(all.bodies()).toEqual(['v1'])
  expect(all.judged).toHaveLength(1)
})

test('it is not asked about if nobody was deleted meanwhile', async () => {
  const all = stage({ destinations: one, mayBeDeleted, deletionsOf: () => 1 })
  all.identify('w1', { userId: 'w' })
  all.identify('v1')
  await all.answer(taken)
  expect([all.bodies(), all.judged]).toEqual([['v1'], []])
})

test('it is left to the next owner where it belongs to another by then', async () => {
  let deletions = 1
  const all = stage({ destinations: one, mayBeDeleted, deletionsOf: () => deletions })
  all.identify('w1', { userId: 'w' })
  const late = all.identify('v1')
  deletions = 2
  all.posted[0]?.answer(taken)
  late.isAbandoned = true
  await all.settle()
  expect([late.settled, all.bodies(), all.pipeline.held]).toEqual([0, [], { records: 0, bytes: 0 }])
})

test('those that are asked about once more are sent in their order', async () => {
  let deletions = 1
  const judgements: PromiseWithResolvers<Judgement>[] = []
  const all = stage({
    ...shop,
    destinations: [destinationOf('crm', { sources: ['shop'], maxInFlight: 2 })],
    deletionsOf: () => deletions,
    judge() {
      const judgement = Promise.withResolvers<Judgement>()
      judgements.push(judgement)
      return judgement.promise
    },
  })
  track(all, 'a', 'b', 'c', 'd')
  deletions = 2
  while (all.posted.length > 0) all.posted[0]?.answer(taken)
  await all.settle()
  judgements[1]?.resolve({ kind: 'send' })
  await all.settle()
  expect(all.bodies()).toEqual([])
  judgements[0]?.resolve({ kind: 'send' })
  await all.settle()
  expect(all.bodies().map((body) => JSON.parse(body).userId)).toEqual(['c', 'd'])
})

test('it is not sent in a batch either', async () => {
  let deletions = 1
  const batch = { format: 'json', maxMessages: 2, maxBytes: 10_000, maxWaitMs: 0 } as const
  const destinations = [destinationOf('crm', { maxInFlight: 1, batch })]
  const all = stage({ destinations, mayBeDeleted, deletionsOf: () => deletions, judge })
  for (const user of ['w', 'w', 'x', 'u', 'y']) all.identify(`"${user}"`, { userId: user })
  deletions = 2
  while (all.posted.length > 0) await all.answer(taken)
  expect(all.told.filter((line) => line.startsWith('suppressed'))).toEqual(['suppressed crm "u"'])
  expect(all.told.filter((line) => line.startsWith('delivered'))).toHaveLength(4)
  expect(all.pipeline.held).toEqual({ records: 0, bytes: 0 })
})

const batchOf3 = { format: 'json', maxMessages: 3, maxBytes: 10_000, maxWaitMs: 0 } as const
const shop = { sources: { shop: {} }, needsJudging: () => true }

/** Hands in an event of each of the users. */
function track({ pipeline }: Stage, ...users: string[]): void {
  for (const [offset, userId] of users.entries()) {
    const value = Buffer.from(JSON.stringify({ type: 'track', event: 'e', userId, messageId: `m${userId}` }))
    const content = { key: Buffer.from(userId), value, headers: { 'source-id': 'shop' } }
    pipeline.accept(new TestRecord('events', offset), content)
  }
}

test('the events of others stay together in their batches, and are asked about no more', async () => {
  let deletions = 1
  const all = stage({
    ...shop,
    destinations: [destinationOf('crm', { sources: ['shop'], maxInFlight: 1, batch: batchOf3 })],
    mayBeSuppressed: ({ body, sourceId, unit }) =>
      sourceId === 'shop' && unit === 2 && JSON.parse(String(body)).userId === 'u',
    deletionsOf: () => deletions,
    judge,
  })
  track(all, 'first', 'a', 'b', 'c', 'd', 'e', 'f', 'u', 'g')
  deletions = 2
  await all.answer(taken)
  const sent: string[] = []
  while (all.posted.length > 0) {
    const messages: { userId: string }[] = JSON.parse(all.bodies()[0] ?? '')
    sent.push(messages.map(({ userId }) => userId).join(''))
    await all.answer(taken)
  }
  expect(sent).toEqual(['abc', 'def', 'g'])
  expect(all.judged.map(({ body }) => JSON.parse(String(body)).userId)).toEqual(['u'])
  expect(all.pipeline.held).toEqual({ records: 0, bytes: 0 })
})

const opens = { failureShare: 0.5, minResults: 2, windowMs: 10_000, openMs: 60_000, maxOpenMs: 60_000 }
const pairs = { ...batchOf3, maxMessages: 2, maxWaitMs: 1_000_000 }
const unreachable = { kind: 'connection', code: 'ECONNREFUSED' } as const

test.each([undefined, pairs])(
  'it is not sent after it has waited for a turn at a failing URL (%j)',
  async (batch) => {
    let deletions = 1
    const all = stage({
      ...shop,
      destinations: [destinationOf('crm', { sources: ['shop'], batch })],
      mayBeSuppressed: ({ body }) => JSON.parse(String(body)).userId === 'u',
      deletionsOf: () => deletions,
      judge,
      bulkhead: { ...roomyBulkhead, maxInFlight: 1 },
      breaker: opens,
    })
    const request = (user: string) => (batch === undefined ? [user] : [user, `${user}2`])
    for (const user of ['a', 'b']) {
      track(all, ...request(user))
      await all.answer(unreachable)
    }
    track(all, ...request('c'))
    await until('it is under way', () => all.posted.length === 1)
    track(all, 'u', 'd')
    await until('they wait', () => all.pipeline.paced.queued === (batch === undefined ? 2 : 1))
    deletions = 2
    all.told.length = 0
    await all.answer(taken)
    await until('the other one is under way', () => all.posted.length > 0)
    expect(all.bodies().join('')).not.toContain('"u"')
    await all.answer(taken)
    await until('none waits', () => all.pipeline.held.records === 0)
    expect(all.told.filter((line) => line.startsWith('parked') && line.includes('"u"'))).toHaveLength(1)
    all.retry(all.written.at(-1))
    await all.settle()
    expect(all.told.at(-1)).toMatch(/^suppressed crm .*"u"/)
    expect(all.bodies()).toEqual([])
    all.pipeline.stop()
  },
)
