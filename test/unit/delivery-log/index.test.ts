import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { readBlock } from '../../../src/delivery-log/block-reader.ts'
import { BlockWriter, type WrittenState } from '../../../src/delivery-log/block-writer.ts'
import { BadCursorError, type LogFilter } from '../../../src/delivery-log/log-query.ts'
import type { LogKind, LogRecord } from '../../../src/delivery-log/log-record.ts'
import { IndexReader } from '../../../src/delivery-log/sqlite/index-reader.ts'
import { type IndexedBlock, IndexWriter } from '../../../src/delivery-log/sqlite/index-writer.ts'
import { arbitraryState } from './arbitrary-state.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const nowMs = 1_800_000_000_000

/** Few words, so that filters find something, of two days and a bit. */
const state = arbitraryState.chain((given) =>
  fc
    .record({
      atMs: fc.integer({ min: nowMs - 2 * dayMs, max: nowMs }),
      destination: fc.constantFrom('crm', 'mail', 'ads'),
      hook: fc.constantFrom('', 'main'),
      source: fc.constantFrom('shop', 'app'),
      messageId: fc.constantFrom('a', 'b', '0b5c8f9e-1a2b-4c3d-8e9f-001122334455', 'é'),
      reason: fc.constantFrom('', 'failed', 'expired'),
      user: fc.constantFrom('', 'abcdef', 'uvwxyz'),
      status: fc.constantFrom(0, 200, 503),
      weight: fc.constantFrom(1, 1, 10),
      durationMs: fc.nat(10_000),
      age: fc.nat(dayMs),
      originPartition: fc.nat(3),
    })
    .map(({ age, ...own }): WrittenState => ({ ...given, ...own, firstSeenMs: own.atMs - age })),
)

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'sluice-index-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

function openWriter(path: string, keptMs = 7 * dayMs): IndexWriter {
  return new IndexWriter({ folder: path, keptMs, now: () => nowMs })
}

/** Blocks of a few states, each the next of its partition. */
function blocksOf(states: readonly WrittenState[], perBlock = 3): IndexedBlock[] {
  const offsets = [0, 0]
  const blocks: IndexedBlock[] = []
  for (let at = 0; at < states.length; at += perBlock) {
    const writer = new BlockWriter()
    for (const one of states.slice(at, at + perBlock)) writer.add(one)
    const partition = blocks.length % 2
    const offset = offsets[partition] ?? 0
    offsets[partition] = offset + 1
    blocks.push({ partition, offset, timestampMs: nowMs, value: writer.take() })
  }
  return blocks
}

function blockWith(only: WrittenState): IndexedBlock {
  const [block] = blocksOf([only])
  if (block === undefined) throw new Error('no block')
  return block
}

function index(path: string, blocks: readonly IndexedBlock[], perCommit = 5): void {
  const writer = openWriter(path)
  for (const [at, block] of blocks.entries()) {
    writer.add(block)
    if (at % perCommit === 0) writer.commit()
  }
  writer.commit()
  writer.close()
}

function open(path: string): IndexReader {
  const reader = new IndexReader(path)
  onTestFinished(() => reader.close())
  return reader
}

function everything(reader: IndexReader, filter: Partial<LogFilter> = {}, limit = 1_000): LogRecord[] {
  const all: LogRecord[] = []
  let cursor: string | undefined
  do {
    const page = reader.search({ fromMs: 0, toMs: Infinity, ...filter }, { limit, cursor })
    all.push(...page.records)
    cursor = page.cursor
  } while (cursor !== undefined)
  return all
}

const inOrder = (records: readonly LogRecord[]): string[] =>
  records.map((record) => JSON.stringify(record, Object.keys(record).toSorted())).toSorted()

const arbitraryFilter: fc.Arbitrary<Partial<LogFilter>> = fc.record(
  {
    fromMs: fc.integer({ min: nowMs - 2 * dayMs, max: nowMs }),
    toMs: fc.integer({ min: nowMs - 2 * dayMs, max: nowMs + 1 }),
    destination: fc.constantFrom('crm', 'ads', 'nobody'),
    source: fc.constant('shop'),
    hook: fc.constant('main'),
    messageId: fc.constantFrom('a', '0b5c8f9e-1a2b-4c3d-8e9f-001122334455'),
    user: fc.constantFrom(Buffer.from('abcdef').toString('hex'), '000000000000'),
    kinds: fc.constantFrom<readonly LogKind[]>(['attempted'], ['dead', 'parked']),
    outcome: fc.constantFrom('answer', 'timeout'),
    reason: fc.constant('failed'),
    status: fc.constant(503),
    onlyFailed: fc.boolean(),
  },
  { requiredKeys: [] },
)

function fits(record: LogRecord, filter: Partial<LogFilter>): boolean {
  const { fromMs = 0, toMs = Infinity, kinds, onlyFailed = false, ...same } = filter
  const isFailed = (record.kind === 'attempted' && record.verdict !== 'delivered') || record.kind === 'dead'
  return (
    record.atMs >= fromMs &&
    record.atMs < toMs &&
    (kinds?.includes(record.kind) ?? true) &&
    (!onlyFailed || isFailed) &&
    Object.entries(same).every(([name, value]) => Reflect.get(record, name) === value)
  )
}

const runs = { numRuns: 40 }

test('the index has all that the topic has, and each record as it was written', () => {
  fc.assert(
    fc.property(fc.array(state, { maxLength: 60 }), (states) => {
      const path = folder()
      const blocks = blocksOf(states)
      index(path, blocks)
      const written = blocks.flatMap(({ partition, value }) => readBlock(value, partition))
      const reader = open(path)
      expect(inOrder(everything(reader))).toEqual(inOrder(written))
      reader.close()
    }),
    runs,
  )
})

test('a search finds what fulfils its filter, newest first, page by page', () => {
  fc.assert(
    fc.property(
      fc.array(state, { maxLength: 80 }),
      arbitraryFilter,
      fc.integer({ min: 1, max: 7 }),
      (states, filter, limit) => {
        const path = folder()
        const blocks = blocksOf(states)
        index(path, blocks)
        const wanted = blocks
          .flatMap(({ partition, value }) => readBlock(value, partition))
          .filter((record) => fits(record, filter))
        const reader = open(path)
        const found = everything(reader, filter, limit)
        expect(inOrder(found)).toEqual(inOrder(wanted))
        expect(found.map(({ atMs }) => atMs)).toEqual(found.map(({ atMs }) => atMs).toSorted((a, b) => b - a))
        reader.close()
      },
    ),
    runs,
  )
})

test('counts are those of the deliveries that records stand for', () => {
  fc.assert(
    fc.property(fc.array(state, { maxLength: 80 }), arbitraryFilter, (states, filter) => {
      const path = folder()
      const blocks = blocksOf(states)
      index(path, blocks)
      const wanted = blocks
        .flatMap(({ partition, value }) => readBlock(value, partition))
        .filter((record) => fits(record, filter))
      const sums = new Map<string, number>()
      for (const { atMs, kind, verdict, reason, weight } of wanted) {
        const key = `${Math.floor(atMs / 60_000) * 60_000} ${kind} ${verdict} ${reason}`
        sums.set(key, (sums.get(key) ?? 0) + weight)
      }
      const reader = open(path)
      const counted = reader.counts({ fromMs: 0, toMs: Infinity, ...filter })
      expect(
        new Map(
          counted.map(({ minuteMs, kind, verdict, reason, count }) => [
            `${minuteMs} ${kind} ${verdict} ${reason}`,
            count,
          ]),
        ),
      ).toEqual(sums)
      reader.close()
    }),
    runs,
  )
})

test('what is read a second time adds nothing, wherever the first reading ended', () => {
  fc.assert(
    fc.property(fc.array(state, { minLength: 4, maxLength: 60 }), fc.nat(), fc.nat(), (states, end, from) => {
      const path = folder()
      const blocks = blocksOf(states)
      index(path, blocks.slice(0, 1 + (end % blocks.length)), 1)
      // Where it was read up to is lost, or is from before a crash: each file knows by itself.
      rmSync(join(path, 'positions.sqlite'))
      for (const ending of ['-wal', '-shm']) rmSync(join(path, `positions.sqlite${ending}`), { force: true })
      index(path, blocks, 1 + (from % 5))
      const reader = open(path)
      const written = blocks.flatMap(({ partition, value }) => readBlock(value, partition))
      expect(inOrder(everything(reader))).toEqual(inOrder(written))
      reader.close()
    }),
    runs,
  )
})

test('a topic that was made again is indexed beside what the one before had', () => {
  const path = folder()
  const [one, two] = fc.sample(state, 2)
  if (one === undefined || two === undefined) throw new Error('no sample')
  const writer = openWriter(path)
  writer.add({ ...blockWith(one), offset: 70 })
  writer.commit()
  writer.restart(0, 0, 'another', true)
  writer.add(blockWith(two))
  writer.commit()
  writer.close()
  expect(everything(open(path))).toHaveLength(2)
})

test('files go when all in them is older than is kept, and older records are not taken', () => {
  const path = folder()
  const [sample] = fc.sample(state, 1)
  if (sample === undefined) throw new Error('no sample')
  const old = { ...sample, atMs: nowMs - 3 * dayMs, firstSeenMs: nowMs - 3 * dayMs }
  const fresh = { ...sample, atMs: nowMs - hourMs, firstSeenMs: nowMs - hourMs }
  index(path, blocksOf([old, fresh]))
  expect(readdirSync(path).filter((name) => /^log-\d+\.sqlite$/.test(name))).toHaveLength(2)
  const writer = openWriter(path, 2 * dayMs)
  expect(writer.tend()).toBe(1)
  writer.add({ ...blockWith(old), offset: 9 })
  expect(writer.commit()).toEqual({ rows: 0, unreadable: 0, expired: 1 })
  writer.close()
  expect(everything(open(path)).map(({ atMs }) => atMs)).toEqual([fresh.atMs])
})

test('of the same millisecond the order is that of coming', () => {
  const path = folder()
  const [sample] = fc.sample(state, 1)
  if (sample === undefined) throw new Error('no sample')
  const at = (kind: number, attempt: number) => ({ ...sample, kind, attempt, durationMs: 9, atMs: nowMs })
  index(path, blocksOf([at(0, 1), at(1, 2), at(0, 3), at(3, 4)], 4))
  expect(everything(open(path)).map(({ attempt }) => attempt)).toEqual([4, 3, 2, 1])
})

test('more records of one millisecond than there are numbers for are all kept', () => {
  const path = folder()
  const [sample] = fc.sample(state, 1)
  if (sample === undefined) throw new Error('no sample')
  const count = 2 ** 17 + 3
  const one = { ...sample, kind: 0, atMs: nowMs, durationMs: 9, answer: undefined, weight: 1 }
  index(
    path,
    blocksOf(
      Array.from({ length: count }, () => one),
      1_000,
    ),
    10,
  )
  const counts = open(path).counts({ fromMs: 0, toMs: Infinity })
  expect(counts.reduce((sum, each) => sum + each.count, 0)).toBe(count)
})

test('percentiles are within six percent', () => {
  const path = folder()
  const [sample] = fc.sample(state, 1)
  if (sample === undefined) throw new Error('no sample')
  const states = Array.from({ length: 1_000 }, (_, at) => ({
    ...sample,
    kind: 0,
    weight: 1,
    atMs: nowMs,
    durationMs: at + 1,
  }))
  index(path, blocksOf(states, 100))
  const [minute] = open(path).percentiles({ fromMs: 0, toMs: Infinity })
  expect(minute?.count).toBe(1_000)
  for (const [found, exact] of [
    [minute?.p50Ms, 500],
    [minute?.p95Ms, 950],
    [minute?.p99Ms, 990],
  ]) {
    expect((found ?? 0) / (exact ?? 1)).toBeGreaterThan(0.94)
    expect((found ?? 0) / (exact ?? 1)).toBeLessThan(1.06)
  }
})

test('a damaged block is passed over and counted', () => {
  const path = folder()
  const writer = openWriter(path)
  const [block] = blocksOf(fc.sample(state, 3))
  if (block === undefined) throw new Error('no sample')
  writer.add({ ...block, value: block.value.subarray(0, 12) })
  writer.add({ ...block, offset: 1 })
  expect(writer.commit()).toMatchObject({ rows: 3, unreadable: 1 })
  writer.close()
})

test.each(['', 'x', '!!', Buffer.from('1.x').toString('base64url')])('%j is no cursor', (cursor) => {
  const search = () => new IndexReader(folder()).search({ fromMs: 0, toMs: 1 }, { limit: 1, cursor })
  expect(search).toThrow(BadCursorError)
})
