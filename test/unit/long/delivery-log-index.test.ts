import { copyFileSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { WrittenState } from '../../../src/delivery-log/block-writer.ts'
import type { LogQuery } from '../../../src/delivery-log/log-query.ts'
import { answerNow, IndexReader } from '../../../src/delivery-log/sqlite/index-reader.ts'
import { type IndexedBlock, IndexWriter } from '../../../src/delivery-log/sqlite/index-writer.ts'
import {
  blocksOf,
  dayMs,
  everything,
  hourMs,
  nowMs,
  state,
  testLogStore,
} from '../../support/log-contract.ts'

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'sluice-index-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

function openWriter(path: string, keptMs = 7 * dayMs): IndexWriter {
  return new IndexWriter({ folder: path, keptMs, now: () => nowMs })
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

function open(path: string): LogQuery {
  const reader = new IndexReader(path)
  return {
    find: async (messageId) => answerNow(reader.find(messageId)),
    search: async (filter, page) => answerNow(reader.search(filter, page)),
    counts: async (filter) => answerNow(reader.counts(filter)),
    percentiles: async (filter) => answerNow(reader.percentiles(filter)),
    groups: async (filter, grouping) => answerNow(reader.groups(filter, grouping)),
    status: async () => ({ ...answerNow(reader.status()), behindMs: -1 }),
    close: async () => reader.close(),
  }
}

testLogStore(async () => {
  const path = mkdtempSync(join(tmpdir(), 'sluice-index-'))
  const query = open(path)
  return {
    async index(blocks, { perCommit, isLost = false } = {}) {
      // Removes the file that says up to where the topic was read. After a crash this file may be lost or
      // old. Each file of the index knows by itself what it has.
      if (isLost)
        for (const ending of ['', '-wal', '-shm'])
          rmSync(join(path, `positions.sqlite${ending}`), { force: true })
      index(path, blocks, perCommit)
    },
    query,
    async close() {
      await query.close()
      rmSync(path, { recursive: true, force: true })
    },
  }
}, 40)

test('after a loss of power nothing of the topic is missing', async () => {
  const path = folder()
  const disk = folder()
  const blocks = blocksOf(fc.sample(state, 60))
  let now = nowMs
  /**
   * Copies files to the disk that survives the loss of power. This disk has the logs as of their last sync.
   * It has all commits of positions, although nobody waits for these commits to reach the disk.
   */
  const save = (names: RegExp): void => {
    for (const name of readdirSync(disk)) if (names.test(name)) rmSync(join(disk, name))
    for (const name of readdirSync(path))
      if (names.test(name) && !name.endsWith('-shm')) copyFileSync(join(path, name), join(disk, name))
  }
  const writer = new IndexWriter({
    folder: path,
    keptMs: 7 * dayMs,
    now: () => now,
    sync: () => save(/^log-/),
  })
  for (const block of blocks) {
    writer.add(block)
    writer.commit()
    save(/^positions/)
    now += 700
  }
  const after = openWriter(disk)
  const positions = new Map(after.positions)
  expect(positions.size).toBe(2)
  for (const block of blocks) {
    if (block.offset < (positions.get(block.partition)?.next ?? 0)) continue
    after.add(block)
    after.commit()
  }
  after.close()
  writer.close()
  expect(await everything(open(disk))).toHaveLength(60)
})

test('a topic that was made again is indexed beside what the one before had', async () => {
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
  expect(await everything(open(path))).toHaveLength(2)
})

test('files go when all in them is older than is kept, and older records are not taken', async () => {
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
  expect((await everything(open(path))).map(({ atMs }) => atMs)).toEqual([fresh.atMs])
})

/** Returns the open files in a folder. The name of a removed file ends with `(deleted)`. */
function openIn(path: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const name = readlinkSync(join('/proc/self/fd', descriptor))
      return name.startsWith(path) ? [name.slice(path.length + 1)] : []
    } catch {
      return [] // The descriptor of this listing is closed by now.
    }
  })
}

describe('what a reader of the index keeps open', () => {
  test('a file that was removed is closed soon, though nobody asks any more', () => {
    const path = folder()
    const [sample] = fc.sample(state, 1)
    if (sample === undefined) throw new Error('no sample')
    const old = { ...sample, atMs: nowMs - 3 * dayMs, firstSeenMs: nowMs - 3 * dayMs }
    index(path, blocksOf([old, { ...sample, atMs: nowMs - hourMs, firstSeenMs: nowMs - hourMs }]))
    const reader = new IndexReader(path)
    onTestFinished(() => reader.close())
    expect(answerNow(reader.status()).rows).toBe(2)
    reader.tend()
    const writer = openWriter(path, 2 * dayMs)
    writer.tend()
    writer.close()
    expect(openIn(path)).toContainEqual(expect.stringContaining('(deleted)'))
    reader.tend()
    expect(openIn(path)).toEqual([])
    expect(answerNow(reader.status()).rows).toBe(1)
  })

  test('not every file of a long time is open at once', () => {
    const path = folder()
    const [sample] = fc.sample(state, 1)
    if (sample === undefined) throw new Error('no sample')
    const hours = 210
    const states = Array.from({ length: hours }, (_, hour) => {
      const atMs = nowMs - hour * hourMs
      return { ...sample, atMs, firstSeenMs: atMs }
    })
    const writer = openWriter(path, 10 * dayMs)
    for (const block of blocksOf(states)) writer.add(block)
    writer.commit()
    writer.close()
    const reader = new IndexReader(path)
    onTestFinished(() => reader.close())
    for (let time = 1; time <= 2; time++) expect(answerNow(reader.status()).rows).toBe(hours)
    expect(openIn(path).filter((name) => name.endsWith('.sqlite'))).toHaveLength(200)
  })
})

test('a partition that is read again behind another one adds nothing, and sets the other one back in no file', async () => {
  const path = folder()
  const [sample] = fc.sample(state, 1)
  if (sample === undefined) throw new Error('no sample')
  const blocks = blocksOf(
    Array.from({ length: 8 }, () => sample),
    1,
  )
  const [zero, one] = [0, 1].map((partition) => blocks.filter((block) => block.partition === partition))
  const last = one?.pop()
  const [first, ...others] = zero ?? []
  if (first === undefined || last === undefined) throw new Error('no blocks')
  const before = openWriter(path)
  for (const block of [...(zero ?? []), ...(one ?? [])]) before.add(block)
  before.commit()
  before.close()
  for (const ending of ['', '-wal', '-shm']) rmSync(join(path, `positions.sqlite${ending}`), { force: true })
  const writer = openWriter(path)
  for (const together of [
    ...(one ?? []).map((block) => [block]),
    [first, last],
    ...others.map((block) => [block]),
  ]) {
    for (const block of together) writer.add(block)
    writer.commit()
  }
  writer.close()
  expect(await everything(open(path))).toHaveLength(8)
})

test('a topic that was made again goes on when it is lost how far it was read', async () => {
  const path = folder()
  const [sample] = fc.sample(state, 1)
  if (sample === undefined) throw new Error('no sample')
  const blocks = blocksOf([sample, sample, sample], 1).map((block, offset) => ({
    ...block,
    partition: 0,
    offset,
  }))
  const [one, two, three] = blocks
  if (one === undefined || two === undefined || three === undefined) throw new Error('no blocks')
  const before = openWriter(path)
  before.add({ ...one, offset: 70 })
  before.commit()
  before.restart(0, 0, 'another', true)
  before.add(one)
  before.add(two)
  before.commit()
  before.close()
  for (const ending of ['', '-wal', '-shm']) rmSync(join(path, `positions.sqlite${ending}`), { force: true })
  index(path, [one, two, three], 1)
  expect(await everything(open(path))).toHaveLength(4)
})

test('many more records of one millisecond than there are numbers for are all kept, at the end of an hour too', async () => {
  const path = folder()
  const [sample] = fc.sample(state, 1)
  if (sample === undefined) throw new Error('no sample')
  const count = 2 ** 17 + 40_000
  const one = { ...sample, kind: 0, atMs: nowMs - 1, durationMs: 9, answer: undefined, weight: 1 }
  index(
    path,
    blocksOf(
      Array.from({ length: count }, () => one),
      1_000,
    ),
    10,
  )
  const counts = await open(path).counts({ fromMs: 0, toMs: Infinity })
  expect(counts.reduce((sum, each) => sum + each.count, 0)).toBe(count)
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
