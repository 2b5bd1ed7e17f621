import { groupings, groupOf, GroupSums } from '../../src/delivery-log/groups.ts'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { readBlock } from '../../src/delivery-log/block-reader.ts'
import { BlockWriter, type WrittenState } from '../../src/delivery-log/block-writer.ts'
import type { LogFilter, LogQuery } from '../../src/delivery-log/log-query.ts'
import type { LogKind, LogRecord } from '../../src/delivery-log/log-record.ts'
import type { IndexedBlock } from '../../src/delivery-log/sqlite/index-writer.ts'
import { arbitraryState } from '../unit/delivery-log/arbitrary-state.ts'

/** Tests of the behaviour that every store of the delivery log has to have. */

export const hourMs = 3_600_000
export const dayMs = 24 * hourMs
/**
 * The start of the present hour, in epoch milliseconds. The tests' records are close to this time, because a
 * store drops records that are too old.
 */
export const nowMs = Math.floor(Date.now() / hourMs) * hourMs

/** A store that only one test uses. It is empty at first. */
export type LogStore = {
  /**
   * Indexes blocks in the order of the topic, `perCommit` blocks at a time. Goes on where the store has ended
   * before. If `isLost` is true, the store has lost this position.
   */
  index(blocks: readonly IndexedBlock[], options?: { perCommit?: number; isLost?: boolean }): Promise<void>
  readonly query: LogQuery
  close(): Promise<void>
}

/**
 * Random states of the two days before `nowMs`. Their fields have only a few different values, so that
 * filters find something.
 */
export const state = arbitraryState.chain((given) =>
  fc
    .record({
      atMs: fc.integer({ min: nowMs - 2 * dayMs, max: nowMs }),
      destination: fc.constantFrom('crm', 'mail', 'ads'),
      hook: fc.constantFrom('', 'main'),
      source: fc.constantFrom('shop', 'app'),
      messageId: fc.constantFrom('a', 'b', '0b5c8f9e-1a2b-4c3d-8e9f-001122334455', 'é', "it's\t\\"),
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

/**
 * Returns blocks of `perBlock` states. The blocks go to two partitions in turn. The offsets of each partition
 * are consecutive.
 */
export function blocksOf(states: readonly WrittenState[], perBlock = 3): IndexedBlock[] {
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

/**
 * Returns the same blocks in another order. The blocks of each partition keep their order. `turns` holds the
 * partition of each next block.
 */
function inTurns(blocks: readonly IndexedBlock[], turns: readonly number[]): IndexedBlock[] {
  const left = [0, 1].map((partition) => blocks.filter((block) => block.partition === partition))
  const ordered = turns.flatMap((turn) => left[turn]?.splice(0, 1) ?? [])
  return [...ordered, ...left.flat()]
}

function recordsIn(blocks: readonly IndexedBlock[]): LogRecord[] {
  return blocks.flatMap(({ partition, value }) => readBlock(value, partition))
}

export async function everything(
  query: LogQuery,
  filter: Partial<LogFilter> = {},
  limit = 1_000,
): Promise<LogRecord[]> {
  const all: LogRecord[] = []
  let cursor: string | undefined
  do {
    const page = await query.search({ fromMs: 0, toMs: Infinity, ...filter }, { limit, cursor })
    all.push(...page.records)
    cursor = page.cursor
  } while (cursor !== undefined)
  return all
}

const hexOf = (hash: string): string => Buffer.from(hash).toString('hex')

const inOrder = (records: readonly LogRecord[]): string[] =>
  records.map((record) => JSON.stringify(record, Object.keys(record).toSorted())).toSorted()

const arbitraryFilter: fc.Arbitrary<Partial<LogFilter>> = fc.record(
  {
    fromMs: fc.integer({ min: nowMs - 2 * dayMs, max: nowMs }),
    toMs: fc.integer({ min: nowMs - 2 * dayMs, max: nowMs + 1 }),
    destination: fc.constantFrom('crm', 'ads', 'nobody'),
    destinations: fc.constantFrom(['crm'], ['ads', 'mail'], ['nobody', "it's"]),
    source: fc.constant('shop'),
    hook: fc.constant('main'),
    messageId: fc.constantFrom('a', '0b5c8f9e-1a2b-4c3d-8e9f-001122334455', "it's\t\\"),
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
  const { fromMs = 0, toMs = Infinity, destinations, kinds, onlyFailed = false, ...same } = filter
  const isFailed = (record.kind === 'attempted' && record.verdict !== 'delivered') || record.kind === 'dead'
  return (
    record.atMs >= fromMs &&
    record.atMs < toMs &&
    (destinations?.includes(record.destination) ?? true) &&
    (kinds?.includes(record.kind) ?? true) &&
    (!onlyFailed || isFailed) &&
    Object.entries(same).every(([name, value]) => Reflect.get(record, name) === value)
  )
}

function sampled(): WrittenState {
  const [sample] = fc.sample(state, 1)
  if (sample === undefined) throw new Error('no sample')
  return sample
}

/** Declares the tests. `numRuns` is the number of runs of each property. */
export function testLogStore(openStore: () => Promise<LogStore>, numRuns: number): void {
  const runs = { numRuns }

  async function withStore(work: (store: LogStore) => Promise<void>): Promise<void> {
    const store = await openStore()
    try {
      await work(store)
    } finally {
      await store.close()
    }
  }

  test('the index has all that the topic has, and each record as it was written', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(state, { maxLength: 60 }), (states) =>
        withStore(async (store) => {
          const blocks = blocksOf(states)
          await store.index(blocks)
          expect(inOrder(await everything(store.query))).toEqual(inOrder(recordsIn(blocks)))
        }),
      ),
      runs,
    )
  })

  test('a search finds what fulfils its filter, newest first, page by page', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(state, { maxLength: 80 }),
        fc.array(fc.tuple(arbitraryFilter, fc.integer({ min: 1, max: 7 })), { minLength: 1, maxLength: 5 }),
        (states, searches) =>
          withStore(async (store) => {
            const blocks = blocksOf(states)
            await store.index(blocks)
            for (const [filter, limit] of searches) {
              const wanted = recordsIn(blocks).filter((record) => fits(record, filter))
              const found = await everything(store.query, filter, limit)
              expect(inOrder(found)).toEqual(inOrder(wanted))
              const times = found.map(({ atMs }) => atMs)
              expect(times).toEqual(times.toSorted((a, b) => b - a))
            }
          }),
      ),
      runs,
    )
  })

  test('a message is found with all that is known of it, oldest first', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(state, { maxLength: 60 }), (states) =>
        withStore(async (store) => {
          const blocks = blocksOf(states)
          await store.index(blocks)
          for (const messageId of ['a', 'é', "it's\t\\", 'nobody']) {
            const wanted = recordsIn(blocks).filter((record) => record.messageId === messageId)
            const found = await store.query.find(messageId)
            expect(inOrder(found)).toEqual(inOrder(wanted))
            const times = found.map(({ atMs }) => atMs)
            expect(times).toEqual(times.toSorted((a, b) => a - b))
          }
        }),
      ),
      runs,
    )
  })

  test('counts are those of the deliveries that records stand for', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(state, { maxLength: 80 }),
        fc.array(arbitraryFilter, { minLength: 1, maxLength: 5 }),
        (states, filters) =>
          withStore(async (store) => {
            const blocks = blocksOf(states)
            await store.index(blocks)
            for (const filter of filters) {
              const sums = new Map<string, number>()
              for (const record of recordsIn(blocks).filter((one) => fits(one, filter))) {
                const { atMs, kind, verdict, reason, weight } = record
                const key = `${Math.floor(atMs / 60_000) * 60_000} ${kind} ${verdict} ${reason}`
                sums.set(key, (sums.get(key) ?? 0) + weight)
              }
              const counted = await store.query.counts({ fromMs: 0, toMs: Infinity, ...filter })
              const asked = counted.map(
                ({ minuteMs, kind, verdict, reason, count }) =>
                  [`${minuteMs} ${kind} ${verdict} ${reason}`, count] as const,
              )
              expect(new Map(asked)).toEqual(sums)
              expect(asked).toHaveLength(sums.size)
            }
          }),
      ),
      runs,
    )
  })

  test('groups are counts of steps, those with most failures first', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(state, { maxLength: 80 }),
        fc.constantFrom(...groupings),
        fc.constantFrom(60_000, 300_000, 3_600_000, 21_600_000),
        fc.integer({ min: 1, max: 4 }),
        (states, by, stepMs, top) =>
          withStore(async (store) => {
            const blocks = blocksOf(states)
            await store.index(blocks)
            const records = recordsIn(blocks)
            const times = records.map(({ atMs }) => atMs)
            const fromMs = Math.min(...times, Date.now())
            const filter = { fromMs, toMs: Math.min(Math.max(...times, fromMs) + 1, fromMs + 1_000 * stepMs) }
            const sums = new GroupSums(filter, { by, stepMs, top })
            for (const record of records) {
              if (record.atMs >= filter.toMs) continue
              const key = groupOf(record, by)
              const isDelivered = record.verdict === 'delivered'
              if (key !== undefined) sums.add(key, { ...record, isDelivered, count: record.weight })
            }
            expect(await store.query.groups(filter, { by, stepMs, top })).toEqual(sums.result())
          }),
      ),
      runs,
    )
  })

  test('what is read a second time adds nothing, wherever the first reading ended', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(state, { minLength: 4, maxLength: 60 }),
        fc.nat(),
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.nat(1), { maxLength: 20 }),
        (states, end, perCommit, turns) =>
          withStore(async (store) => {
            const blocks = blocksOf(states)
            await store.index(blocks.slice(0, 1 + (end % blocks.length)), { perCommit: 1 })
            await store.index(inTurns(blocks, turns), { perCommit, isLost: true })
            const written = recordsIn(blocks)
            expect(inOrder(await everything(store.query))).toEqual(inOrder(written))
            expect(inOrder(await everything(store.query, {}, 3))).toEqual(inOrder(written))
            const always = { fromMs: 0, toMs: Infinity }
            const count = (await store.query.counts(always)).reduce((sum, one) => sum + one.count, 0)
            expect(count).toBe(written.reduce((sum, { weight }) => sum + weight, 0))
            const attempts = written.filter(({ kind }) => kind === 'attempted')
            const timed = (await store.query.percentiles(always)).reduce((sum, one) => sum + one.count, 0)
            expect(timed).toBe(attempts.reduce((sum, { weight }) => sum + weight, 0))
          }),
      ),
      runs,
    )
  })

  test('of a message the records of one user alone are found and counted', () =>
    withStore(async (store) => {
      const sample = { ...sampled(), messageId: 'a', kind: 0, weight: 1, atMs: nowMs }
      await store.index(blocksOf(['abcdef', 'uvwxyz', ''].map((user) => ({ ...sample, user }))))
      const user = Buffer.from('abcdef').toString('hex')
      const filter = { messageId: 'a', user }
      expect((await everything(store.query, filter)).map((record) => record.user)).toEqual([user])
      const always = { fromMs: 0, toMs: Infinity }
      const counts = await store.query.counts({ ...always, ...filter })
      expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(1)
      const timed = await store.query.percentiles({ ...always, ...filter })
      expect(timed.map(({ count }) => count)).toEqual([1])
    }))

  test('records are found and counted by an indexed value, also together with a message or a destination', () =>
    withStore(async (store) => {
      const sample = { ...sampled(), destination: 'crm', kind: 0, weight: 1, atMs: nowMs }
      await store.index(
        blocksOf([
          { ...sample, messageId: 'a', values: 'abcdefuvwxyz' },
          { ...sample, messageId: 'b', destination: 'ads', values: 'uvwxyz' },
          { ...sample, messageId: 'é', values: '' },
        ]),
      )
      const idsOf = async (filter: Partial<LogFilter>): Promise<string[]> =>
        (await everything(store.query, filter)).map(({ messageId }) => messageId).toSorted()
      expect(await idsOf({ value: hexOf('uvwxyz') })).toEqual(['a', 'b'])
      expect(await idsOf({ value: hexOf('abcdef') })).toEqual(['a'])
      expect(await idsOf({ value: hexOf('uvwxyz'), destination: 'ads' })).toEqual(['b'])
      expect(await idsOf({ value: hexOf('uvwxyz'), messageId: 'a' })).toEqual(['a'])
      expect(await idsOf({ value: '000000000000' })).toEqual([])
      const always = { fromMs: 0, toMs: Infinity, value: hexOf('uvwxyz') }
      const counts = await store.query.counts(always)
      expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(2)
    }))

  test('of the same millisecond the order is that of coming', () =>
    withStore(async (store) => {
      const sample = sampled()
      const at = (kind: number, attempt: number) => ({ ...sample, kind, attempt, durationMs: 9, atMs: nowMs })
      await store.index(blocksOf([at(0, 1), at(1, 2), at(0, 3), at(3, 4)], 4))
      expect((await everything(store.query)).map(({ attempt }) => attempt)).toEqual([4, 3, 2, 1])
    }))

  test('percentiles are within six percent', () =>
    withStore(async (store) => {
      const sample = sampled()
      const states = Array.from({ length: 1_000 }, (_, at) => ({
        ...sample,
        kind: 0,
        weight: 1,
        atMs: nowMs,
        durationMs: at + 1,
      }))
      await store.index(blocksOf(states, 100))
      const [minute] = await store.query.percentiles({ fromMs: 0, toMs: Infinity })
      expect(minute?.count).toBe(1_000)
      for (const [found, exact] of [
        [minute?.p50Ms, 500],
        [minute?.p95Ms, 950],
        [minute?.p99Ms, 990],
      ]) {
        expect((found ?? 0) / (exact ?? 1)).toBeGreaterThan(0.94)
        expect((found ?? 0) / (exact ?? 1)).toBeLessThan(1.06)
      }
    }))

  test('one that is empty says so', () =>
    withStore(async (store) => {
      await store.index([])
      expect(await store.query.status()).toMatchObject({ oldestMs: 0, newestMs: 0, rows: 0 })
      expect(await everything(store.query)).toEqual([])
    }))

  test('it tells the time of its oldest and its newest record', () =>
    withStore(async (store) => {
      const sample = sampled()
      await store.index(
        blocksOf([nowMs - dayMs, nowMs - 5, nowMs - hourMs].map((atMs) => ({ ...sample, atMs }))),
      )
      const status = await store.query.status()
      expect(status).toMatchObject({ oldestMs: nowMs - dayMs, newestMs: nowMs - 5, rows: 3 })
    }))

  test.each(['', 'x', '!!', Buffer.from('1.x').toString('base64url')])('%j is no cursor', (cursor) =>
    withStore(async (store) => {
      const search = store.query.search({ fromMs: 0, toMs: 1 }, { limit: 1, cursor })
      await expect(search).rejects.toMatchObject({ name: 'BadCursorError' })
    }),
  )
}
