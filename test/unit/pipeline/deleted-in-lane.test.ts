import { expect, test } from 'vitest'
import type { Judgement } from '../../../src/message/judgement.ts'
import type { PipelineOptions } from '../../../src/pipeline/pipeline-ports.ts'
import { destinationOf, stage, taken } from './stage.ts'

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
