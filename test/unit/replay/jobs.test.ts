import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeJobRecord,
  encodeJobRecord,
  type JobOrder,
  type JobProgress,
  type JobRecord,
} from '../../../src/replay/job.ts'
import { Jobs, stateOf } from '../../../src/replay/jobs.ts'

const order: JobOrder = {
  id: '20260723-101500-3f9a2c',
  selection: { from: 'dead-letters', destinationId: 'erp', fromMs: 1, toMs: 2 },
  perSecond: 100,
  by: 'ann@host',
  atMs: 5,
  ranges: [
    { start: 0, end: 10 },
    { start: 3, end: 3 },
  ],
  topicId: 'Zq3AbCdEfGhIjKlMnOpQrS',
  counted: { records: 4, bytes: 400, leftOut: { value_omitted: 1 } },
}

function progressOf(given: Partial<JobProgress>): JobProgress {
  const done = { records: 0, bytes: 0, leftOut: {} }
  return { term: 1, note: 0, owner: 'a', offsets: [0, 3], done, atMs: 6, isOver: false, ...given }
}

const { id } = order
const records: readonly JobRecord[] = [
  { kind: 'order', order },
  { kind: 'wish', id, wish: { state: 'stop', by: 'ben', atMs: 7, detail: 'the destination is off' } },
  { kind: 'progress', id, progress: progressOf({ offsets: [4, 3], note: 3, unsent: [[0, 1, 2]] }) },
  { kind: 'order', order: { ...order, again: true } },
  {
    kind: 'audit',
    key: 'k',
    entry: { atMs: 5, by: 'ann', action: 'created', job: id, records: 4, detail: 'dead letters' },
  },
]

test.each(records)('a record of kind $kind is read as it was written', (record) => {
  const { key, value } = encodeJobRecord(record)
  expect(decodeJobRecord(key, value)).toEqual(record)
  expect(decodeJobRecord(key, null)).toBeUndefined()
})

function again(record: JobRecord): JobRecord | undefined {
  const { key, value } = encodeJobRecord(record)
  return decodeJobRecord(key, value)
}

test('what others have put into the topic is passed over', () => {
  const good = records.map((record) => encodeJobRecord(record))
  fc.assert(
    fc.property(
      fc.constantFrom(...good),
      fc.oneof(fc.json(), fc.string()),
      fc.boolean(),
      ({ key, value }, text, isKey) => {
        const bytes = Buffer.from(text)
        const read = isKey ? decodeJobRecord(bytes, value) : decodeJobRecord(key, bytes)
        expect(read === undefined ? undefined : again(read)).toEqual(read)
      },
    ),
    { numRuns: 1_000 },
  )
})

function jobOf(...taken: readonly JobRecord[]) {
  const jobs = new Jobs()
  for (const record of taken) jobs.take(record)
  const job = jobs.get(id)
  if (job === undefined) throw new Error('it is not known')
  return job
}

function noted(given: Partial<JobProgress>): JobRecord {
  return { kind: 'progress', id, progress: progressOf(given) }
}

const asked: JobRecord = { kind: 'order', order }

describe('of a replay', () => {
  test('what an owner of before still writes counts for nothing', () => {
    const job = jobOf(
      asked,
      noted({ note: 4 }),
      noted({ term: 2, owner: 'b', offsets: [6, 3] }),
      noted({ note: 5 }),
    )
    expect(job.progress).toMatchObject({ term: 2, owner: 'b', offsets: [6, 3] })
  })

  test('of two owners of one term the first has it, also when the log is compacted later', () => {
    const first = noted({ term: 2, owner: 'a' })
    const second = noted({ term: 2, owner: 'b' })
    expect(jobOf(asked, first, second).progress?.owner).toBe('a')
    expect(jobOf(asked, second, noted({ term: 2, owner: 'a', note: 1 })).progress?.owner).toBe('a')
  })

  test('the state is what is wanted, and how far it is', () => {
    const stop: JobRecord = { kind: 'wish', id, wish: { state: 'stop', by: 'ben', atMs: 7 } }
    const run: JobRecord = { kind: 'wish', id, wish: { state: 'run', by: 'cleo', atMs: 8 } }
    expect(stateOf(jobOf(asked))).toBe('waiting')
    expect(stateOf(jobOf(asked, noted({})))).toBe('running')
    expect(stateOf(jobOf(asked, noted({}), stop))).toBe('stopped')
    expect(stateOf(jobOf(asked, noted({}), stop, run))).toBe('running')
    expect(stateOf(jobOf(asked, stop, noted({ isOver: true })))).toBe('done')
  })

  test('that is done a worker keeps no offsets but of the last thousand, or they would fill its memory over months', () => {
    const over = noted({ note: 7, isOver: true, unsent: [[0, 1, 2]] })
    const kept = { order, progress: { note: 7, offsets: [], unsent: [[0, 1, 2]], isOver: true } }
    expect(jobOf(asked, noted({}), over)).toMatchObject(kept)
    expect(jobOf(over, asked)).toMatchObject(kept)
    const others = Array.from({ length: 1_000 }, (_, index): readonly JobRecord[] => [
      { kind: 'order', order: { ...order, id: `other-${index}` } },
      { kind: 'progress', id: `other-${index}`, progress: progressOf({ isOver: true }) },
    ]).flat()
    const slim = {
      order: { ...order, ranges: [] },
      progress: { note: 7, offsets: [], unsent: [], isOver: true },
    }
    expect(jobOf(asked, over, ...others)).toMatchObject(slim)
    const audited = new Jobs(true)
    for (const record of [asked, over, ...others]) audited.take(record)
    expect(audited.get(id)).toMatchObject({ order, progress: { offsets: [0, 3] } })
    expect([...audited.remembered()].map((job) => job.order.id)).not.toContain(id)
  })

  test('the order of the records after compaction does not matter', () => {
    const all = [asked, noted({ term: 1, note: 9 }), noted({ term: 2, owner: 'b', note: 2 }), records[1]]
    fc.assert(
      fc.property(fc.shuffledSubarray(all, { minLength: all.length }), (shuffled) => {
        const job = jobOf(...shuffled.filter((record) => record !== undefined))
        expect(job).toMatchObject({ order, wish: { state: 'stop' }, progress: { term: 2, note: 2 } })
      }),
    )
  })
})
