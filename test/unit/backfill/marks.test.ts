import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MarkKeeper } from '../../../src/backfill/mark-keeper.ts'
import { decodeMark, encodeMark, isBehind, type Mark, Marks } from '../../../src/backfill/marks.ts'

const id = fc.string({ minLength: 1, maxLength: 10, unit: 'grapheme' })
const names = { destinationId: id, spaceId: id }
const anyMark: fc.Arbitrary<Mark> = fc.oneof(
  fc.record({ kind: fc.constant('missed' as const), ...names }),
  fc.record({ kind: fc.constant('begun' as const), ...names }),
  fc.record({ kind: fc.constant('filled' as const), ...names, upTo: fc.maxSafeNat() }),
)

describe('a mark', () => {
  test('is read as it was written', () => {
    fc.assert(
      fc.property(anyMark, (mark) => {
        const { key, value } = encodeMark(mark)
        expect(decodeMark(key, value)).toEqual(mark)
      }),
      { numRuns: 1_000 },
    )
  })

  test('has a key that no other kind, destination or space has', () => {
    fc.assert(
      fc.property(anyMark, anyMark, (one, other) => {
        const isSame =
          one.kind === other.kind &&
          one.destinationId === other.destinationId &&
          one.spaceId === other.spaceId
        expect(encodeMark(one).key.equals(encodeMark(other).key)).toBe(isSame)
      }),
      { numRuns: 1_000 },
    )
  })

  test('is none of what somebody else wrote', () => {
    const texts = ['', '{', '[]', '[1,2]', '["d"]', '["d",""]', '["d","s","x"]', '["d","s","filled"]', '{}']
    for (const key of texts) expect(decodeMark(Buffer.from(key), Buffer.from('{"upTo":-1}'))).toBeUndefined()
    expect(decodeMark(Buffer.from('["d","s"]'), null)).toBeUndefined()
  })
})

const pair = { destinationId: 'crm', spaceId: 'space' }

/** A log that others write to as well. What was written lands later, and is acknowledged later still. */
class SimulatedLog {
  readonly records: { offset: number; key: Buffer; value: Buffer }[] = []
  readonly #flying: {
    record: { key: Buffer; value: Buffer }
    offset: number
    resolve: (at: { offset: number }) => void
  }[] = []

  append(record: { key: Buffer; value: Buffer }): number {
    this.records.push({ ...record, offset: this.records.length })
    return this.records.length - 1
  }

  write(record: { key: Buffer; value: Buffer }): Promise<{ offset: number }> {
    return new Promise((resolve) => this.#flying.push({ record, offset: -1, resolve }))
  }

  land(): void {
    for (const flight of this.#flying) if (flight.offset < 0) flight.offset = this.append(flight.record)
  }

  acknowledge(): void {
    this.land()
    for (const { offset, resolve } of this.#flying.splice(0)) resolve({ offset })
  }

  /** What compaction may leave of it. */
  get compacted() {
    return this.records.filter(
      ({ key, offset }) => !this.records.some((later) => later.offset > offset && later.key.equals(key)),
    )
  }
}

type Step =
  | { kind: 'miss'; worker: number }
  | { kind: 'update'; worker: number }
  | { kind: 'land' | 'acknowledge' }
  | { kind: 'begin' }
  | { kind: 'fill' }
  | { kind: 'restart'; worker: number }

const worker = fc.nat({ max: 1 })
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('miss' as const), worker }),
  fc.record({ kind: fc.constant('update' as const), worker }),
  fc.record({ kind: fc.constantFrom('land' as const, 'acknowledge' as const) }),
  fc.record({ kind: fc.constant('begin' as const) }),
  fc.record({ kind: fc.constant('fill' as const) }),
  fc.record({ kind: fc.constant('restart' as const), worker }),
)

describe('whatever workers miss, and whenever backfills begin and end', () => {
  test('what was missed after the last whole backfill began is marked, and nothing is when all came before it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        const log = new SimulatedLog()
        const open = (): MarkKeeper =>
          new MarkKeeper({
            async *read(from) {
              const end = log.records.length
              await Promise.resolve()
              yield log.compacted.filter(({ offset }) => offset >= from && offset < end)
            },
            write: (record) => log.write(record),
            onMark: () => undefined,
          })
        const workers = [open(), open()]
        const settle = async (one: MarkKeeper): Promise<void> => {
          for (let round = 0; round < 3; round++) {
            await one.update()
            log.acknowledge()
            await one.written()
          }
        }
        let at = 0
        let lastMiss = -1
        let backfill: { begunAt: number; upTo: number } | undefined
        let filledFrom = -1
        for (const { kind, ...rest } of steps) {
          at++
          const of = 'worker' in rest ? rest.worker : 0
          switch (kind) {
            case 'miss':
              void workers[of]?.miss(pair.destinationId, pair.spaceId)
              lastMiss = at
              break
            case 'update':
              await workers[of]?.update()
              break
            case 'land':
              log.land()
              break
            case 'acknowledge':
              log.acknowledge()
              await new Promise(setImmediate)
              break
            case 'begin':
              log.append(encodeMark({ kind: 'begun', ...pair }))
              backfill = { begunAt: at, upTo: log.records.length }
              break
            case 'fill':
              if (backfill === undefined) break
              log.append(encodeMark({ kind: 'filled', ...pair, upTo: backfill.upTo }))
              filledFrom = backfill.begunAt
              backfill = undefined
              break
            case 'restart': {
              // In good order: what is killed may forget what it missed during a backfill.
              const old = workers[of]
              if (old !== undefined) await settle(old)
              workers[of] = open()
            }
          }
        }
        for (const one of workers) await settle(one)
        for (const one of workers) await one.update()
        const seen = new Marks()
        for (const { key, value, offset } of log.compacted) {
          const mark = decodeMark(key, value)
          if (mark !== undefined) seen.take(mark, offset)
        }
        const isMarked = isBehind(seen.of(pair.destinationId, pair.spaceId))
        if (lastMiss > filledFrom) expect(isMarked).toBe(lastMiss > 0)
        // What is written late is taken for missed late: a mark too many, never one too few.
        if (lastMiss < 0) expect(isMarked).toBe(false)
        for (const one of workers) expect(one.behind).toEqual(isMarked ? [pair] : [])
      }),
      { numRuns: 1_500 },
    )
  })

  test('a mark is taken down by a backfill that began after it, and one miss is one record', async () => {
    const log = new SimulatedLog()
    const told: string[] = []
    const keeper = new MarkKeeper({
      async *read(from) {
        await Promise.resolve()
        yield log.records.slice(from)
      },
      write: (record) => log.write(record),
      onMark: (destination, space) => told.push(`${destination} ${space}`),
    })
    let waiting = 0
    for (let misses = 0; misses < 5; misses++) {
      waiting++
      void keeper.miss('crm', 'space')?.then(() => waiting--)
    }
    log.land()
    await Promise.resolve()
    expect(waiting).toBe(5)
    log.acknowledge()
    await keeper.written()
    expect(waiting).toBe(0)
    expect(keeper.behind).toEqual([pair])
    // Nothing is to be waited for: the log says so already.
    expect(keeper.miss('crm', 'space')).toBeUndefined()
    for (let round = 0; round < 3; round++) {
      await keeper.update()
      void keeper.miss('crm', 'space')
    }
    await keeper.update()
    expect(log.records).toHaveLength(1)
    log.append(encodeMark({ kind: 'begun', ...pair }))
    log.append(encodeMark({ kind: 'filled', ...pair, upTo: log.records.length }))
    await keeper.update()
    expect(keeper.behind).toEqual([])
    expect(told).toEqual(['crm space'])
    void keeper.miss('crm', 'space')
    log.acknowledge()
    await keeper.written()
    expect(keeper.behind).toEqual([pair])
  })
})

test('what is missed while the log is read, after it has told of a backfill that began, is written at once', async () => {
  const log = new SimulatedLog()
  const halfRead = Promise.withResolvers<void>()
  let isToWait = false
  const keeper = new MarkKeeper({
    async *read(from) {
      await Promise.resolve()
      yield log.records.slice(from)
      if (isToWait) await halfRead.promise
    },
    write: (record) => log.write(record),
    onMark: () => undefined,
  })
  void keeper.miss('crm', 'space')
  log.acknowledge()
  await keeper.written()
  await keeper.update()
  log.append(encodeMark({ kind: 'begun', ...pair }))
  isToWait = true
  const updating = keeper.update()
  expect(keeper.miss('crm', 'space')).toBeUndefined()
  await new Promise(setImmediate)
  expect(keeper.miss('crm', 'space')).toBeInstanceOf(Promise)
  log.acknowledge()
  halfRead.resolve()
  await updating
  expect(log.records.filter(({ key }) => decodeMark(key, Buffer.from('{}'))?.kind === 'missed')).toHaveLength(
    2,
  )
})
