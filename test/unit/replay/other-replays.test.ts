import { expect, test } from 'vitest'
import type { SourceRecord } from '../../../src/replay/chosen.ts'
import type { JobOrder, JobProgress } from '../../../src/replay/job.ts'
import { Jobs } from '../../../src/replay/jobs.ts'
import { OtherReplays } from '../../../src/replay/other-replays.ts'

const earlier: JobOrder = {
  id: 'earlier',
  selection: { from: 'dead-letters', destinationId: 'erp' },
  perSecond: 100,
  by: 'ann',
  atMs: 1_000,
  ranges: [{ start: 0, end: 100 }],
  topicId: 'topic-1',
}
const own = { id: 'own', atMs: 2_000, selection: earlier.selection, topicId: 'topic-1' }

function progressOf(given: Partial<JobProgress>): JobProgress {
  const done = { records: 0, bytes: 0, leftOut: {} }
  return { term: 1, note: 0, owner: 'w1', offsets: [0], done, unsent: [], atMs: 1, isOver: false, ...given }
}

/** Returns the log of replays, with one earlier replay. */
function jobsOf(order: Partial<JobOrder>, progress?: Partial<JobProgress>, isStopped = false): Jobs {
  const jobs = new Jobs()
  const { id } = earlier
  jobs.take({ kind: 'order', order: { ...earlier, ...order } })
  if (progress !== undefined) jobs.take({ kind: 'progress', id, progress: progressOf(progress) })
  if (isStopped) jobs.take({ kind: 'wish', id, wish: { state: 'stop', by: 'ann', atMs: 2 } })
  return jobs
}

/** A dead letter of the destination `erp`. */
function letterAt(offset: number, given: Partial<SourceRecord> = {}): SourceRecord {
  const headers = { 'destination-id': 'erp', reason: 'expired', 'source-id': 'shop', 'message-id': 'm-1' }
  return { partition: 0, offset, key: null, value: null, timestampMs: 500, ...given, headers }
}

function sentOf(jobs: Jobs, offsets: readonly number[], replay: Partial<typeof own> = {}): number[] {
  const others = new OtherReplays(jobs, { ...own, ...replay })
  return offsets.filter((offset) => others.haveSent(letterAt(offset), 'm-1'))
}

test('what an earlier replay has sent is known by its offsets, and what it has not read yet is not', () => {
  expect(sentOf(jobsOf({}, { isOver: true }), [0, 99, 100])).toEqual([0, 99])
  expect(sentOf(jobsOf({}, { offsets: [40] }, true), [39, 40])).toEqual([39])
  expect(sentOf(jobsOf({}, undefined, true), [0])).toEqual([])
})

test('an earlier replay that is under way sends its rest, so a later one leaves that out; not the other way round', () => {
  expect(sentOf(jobsOf({}), [0, 99])).toEqual([0, 99])
  expect(sentOf(jobsOf({}, { offsets: [40] }), [39, 40])).toEqual([39, 40])
  expect(sentOf(jobsOf({ atMs: 3_000 }, { offsets: [40] }), [39, 40])).toEqual([39])
})

test('a replay leaves out nothing that it has sent itself', () => {
  expect(sentOf(jobsOf({ id: own.id }, undefined), [0])).toEqual([])
})

test.each([
  ['another destination', { from: 'dead-letters', destinationId: 'crm' }, false],
  ['another reason', { from: 'dead-letters', reason: 'dropped' }, false],
  ['another source', { from: 'dead-letters', sourceId: 'app' }, false],
  ['another message', { from: 'dead-letters', messageId: 'm-2' }, false],
  ['a time before', { from: 'dead-letters', toMs: 500 }, false],
  ['the events', { from: 'events', destinationId: 'erp' }, false],
  ['all dead letters', { from: 'dead-letters' }, true],
  ['its reason', { from: 'dead-letters', reason: 'expired' }, true],
  ['its message', { from: 'dead-letters', messageId: 'm-1' }, true],
  ['its time', { from: 'dead-letters', fromMs: 500, toMs: 501 }, true],
] as const)('of a dead letter, an earlier replay of %s: has sent it: %s %s', (_what, selection, isSent) => {
  expect(sentOf(jobsOf({ selection }, { isOver: true }), [1])).toEqual(isSent ? [1] : [])
})

test('events that went to another destination are not sent to this one yet', () => {
  const selection = { from: 'events', destinationId: 'erp', messageId: 'm-1' } as const
  const [toErp, toCrm] = ['erp', 'crm'].map((destinationId) =>
    jobsOf({ selection: { from: 'events', destinationId, sourceId: 'shop' } }, { isOver: true }),
  )
  expect(toErp && sentOf(toErp, [1], { selection })).toEqual([1])
  expect(toCrm && sentOf(toCrm, [1], { selection })).toEqual([])
})

test('what an earlier replay has left out is sent by a later one', () => {
  expect(sentOf(jobsOf({}, { isOver: true, unsent: [[0, 10, 12]] }), [9, 10, 11, 12])).toEqual([9, 12])
})

test('of a replay by a worker that noted only how many were left out, everything is sent again', () => {
  const over = { isOver: true, unsent: undefined }
  const done = { records: 1, bytes: 1 }
  const off = jobsOf({}, { ...over, done: { ...done, leftOut: { destination_off: 1 } } })
  expect(sentOf(off, [1])).toEqual([])
  const lasting = jobsOf({}, { ...over, done: { ...done, leftOut: { not_replayable: 1 } } })
  expect(sentOf(lasting, [1])).toEqual([1])
})

test('the offsets of a topic that was created again belong to other records', () => {
  expect(sentOf(jobsOf({ topicId: 'topic-0' }, { isOver: true }), [1])).toEqual([])
  const unknown = new OtherReplays(jobsOf({ topicId: undefined }, { isOver: true }), own)
  expect(unknown.haveSent(letterAt(1, { timestampMs: earlier.atMs }), 'm-1')).toBe(true)
  expect(unknown.haveSent(letterAt(1, { timestampMs: earlier.atMs + 1 }), 'm-1')).toBe(false)
})

test('what another replay sends meanwhile is known as soon as its progress is read', () => {
  const jobs = jobsOf({ atMs: 3_000 }, { offsets: [1] })
  const others = new OtherReplays(jobs, own)
  expect(others.haveSent(letterAt(1), 'm-1')).toBe(false)
  jobs.take({ kind: 'progress', id: earlier.id, progress: progressOf({ note: 1, offsets: [2] }) })
  expect(others.haveSent(letterAt(1), 'm-1')).toBe(true)
})
