import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MarkKeeper } from '../../../src/backfill/mark-keeper.ts'
import { decodeMark, encodeMark, type Mark, Marks, needsBackfill } from '../../../src/backfill/marks.ts'
import type { Standing } from '../../../src/backfill/standing.ts'

const id = fc.string({ minLength: 1, maxLength: 10, unit: 'grapheme' })
const names = { destinationId: id, spaceId: id }
const count = fc.maxSafeNat()
const anyStanding: fc.Arbitrary<Standing> = fc.oneof(
  fc.record({ kind: fc.constant('told' as const), upTo: count }),
  fc.record({
    kind: fc.constant('syncing' as const),
    upTo: count,
    withLeft: fc.boolean(),
    after: fc.option(fc.tuple(id, id)),
    sent: count,
  }),
  fc.record({ kind: fc.constantFrom('new' as const, 'parted' as const, 'left_out' as const) }),
)
const anyMark: fc.Arbitrary<Mark> = fc.oneof(
  fc.record({ kind: fc.constant('unit' as const), ...names, unit: fc.nat(), standing: anyStanding }),
  fc.record({ kind: fc.constant('tracked' as const), unit: fc.nat() }),
  fc.record({ kind: fc.constant('missed' as const), ...names }),
  fc.record({ kind: fc.constant('begun' as const), ...names }),
  fc.record({ kind: fc.constant('filled' as const), ...names, upTo: fc.maxSafeNat() }),
)

/** Returns a mark without its standing and `upTo`, which are no part of its key. */
function stateKeyOf(mark: Mark): unknown {
  return { ...mark, standing: undefined, upTo: undefined }
}

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
        const isSame = isDeepStrictEqual(stateKeyOf(one), stateKeyOf(other))
        expect(encodeMark(one).key.equals(encodeMark(other).key)).toBe(isSame)
      }),
      { numRuns: 1_000 },
    )
  })

  test('is none of what somebody else wrote', () => {
    const texts = ['', '{', '[]', '[1,2]', '["d"]', '["d",""]', '["d","s","x"]', '["d","s","filled"]', '{}']
    const ofUnits = [
      '["d","s","unit"]',
      '["d","s","unit",-1]',
      '["d","s","unit",1,2]',
      '["d","s","missed",1]',
    ]
    const ofAll = [
      '[null,"tracked"]',
      '[null,"tracked",-1]',
      '[null,"tracked",1,2]',
      '[null,"s",1]',
      '[null,"s"]',
    ]
    for (const key of [...texts, ...ofUnits, ...ofAll])
      expect(decodeMark(Buffer.from(key), Buffer.from('{"upTo":-1}'))).toBeUndefined()
    const standings = [
      '{}',
      '{"kind":"told"}',
      '{"kind":"syncing","upTo":1,"withLeft":true,"sent":1}',
      '{"kind":"syncing","upTo":1,"withLeft":true,"sent":1,"after":["p",""]}',
      '{"kind":"syncing","upTo":1,"withLeft":1,"sent":1,"after":null}',
    ]
    for (const value of standings)
      expect(decodeMark(Buffer.from('["d","s","unit",1]'), Buffer.from(value))).toBeUndefined()
    expect(decodeMark(Buffer.from('["d","s"]'), null)).toBeUndefined()
  })
})

const pair = { destinationId: 'crm', spaceId: 'space' }

/**
 * A log that others write to as well. A record lands some time after its write, and the acknowledgement comes
 * later still.
 */
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

  /** Returns the records that compaction may leave. */
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
            partitions: 2,
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
              void workers[of]?.needsBackfill(pair.destinationId, pair.spaceId)
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
              // The worker stops cleanly, because a killed worker may forget what it missed during a
              // backfill.
              const old = workers[of]
              if (old !== undefined) await settle(old)
              workers[of] = open()
            }
          }
        }
        for (const one of workers) await settle(one)
        for (const one of workers) await one.update()
        const seen = new Marks(2)
        for (const { key, value, offset } of log.compacted) {
          const mark = decodeMark(key, value)
          if (mark !== undefined) seen.take(mark, offset)
        }
        const isMarked = needsBackfill(seen.of(pair.destinationId, pair.spaceId))
        if (lastMiss > filledFrom) expect(isMarked).toBe(lastMiss > 0)
        // A mark that is written late counts as missed late. So there may be a mark too many, but never one
        // too few.
        if (lastMiss < 0) expect(isMarked).toBe(false)
        for (const one of workers) expect(one.needingBackfill).toEqual(isMarked ? [pair] : [])
      }),
      { numRuns: 1_500 },
    )
  })

  test('a mark is taken down by a backfill that began after it, and one miss is one record', async () => {
    const log = new SimulatedLog()
    const told: string[] = []
    const keeper = new MarkKeeper({
      partitions: 2,
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
      void keeper.needsBackfill('crm', 'space')?.then(() => waiting--)
    }
    log.land()
    await Promise.resolve()
    expect(waiting).toBe(5)
    log.acknowledge()
    await keeper.written()
    expect(waiting).toBe(0)
    expect(keeper.needingBackfill).toEqual([pair])
    // The delivery needn't wait for a write, because the log has the mark already.
    expect(keeper.needsBackfill('crm', 'space')).toBeUndefined()
    for (let round = 0; round < 3; round++) {
      await keeper.update()
      void keeper.needsBackfill('crm', 'space')
    }
    await keeper.update()
    expect(log.records).toHaveLength(1)
    log.append(encodeMark({ kind: 'begun', ...pair }))
    log.append(encodeMark({ kind: 'filled', ...pair, upTo: log.records.length }))
    await keeper.update()
    expect(keeper.needingBackfill).toEqual([])
    expect(told).toEqual(['crm space'])
    void keeper.needsBackfill('crm', 'space')
    log.acknowledge()
    await keeper.written()
    expect(keeper.needingBackfill).toEqual([pair])
  })
})

/** Returns the marks of a log of two units. */
function take(marks: readonly Mark[]): Marks {
  const taken = new Marks(2)
  for (const [offset, mark] of marks.entries()) taken.take(mark, offset)
  return taken
}

function isMarkedBy(marks: readonly Mark[]): boolean {
  return take(marks).needingBackfill.length > 0
}

describe('units that have told all', () => {
  const unit = (number: number, standing: Standing): Mark => ({
    kind: 'unit',
    ...pair,
    unit: number,
    standing,
  })
  const missed: Mark = { kind: 'missed', ...pair }

  test('make up together for what was missed before the first of them began', () => {
    expect(isMarkedBy([missed, unit(0, { kind: 'told', upTo: 1 })])).toBe(true)
    expect(isMarkedBy([missed, unit(0, { kind: 'told', upTo: 1 }), unit(1, { kind: 'told', upTo: 2 })])).toBe(
      false,
    )
    expect(isMarkedBy([missed, unit(0, { kind: 'told', upTo: 0 }), unit(1, { kind: 'told', upTo: 2 })])).toBe(
      true,
    )
    expect(isMarkedBy([missed, unit(0, { kind: 'told', upTo: 1 }), unit(1, { kind: 'left_out' })])).toBe(true)
    const told = [unit(0, { kind: 'told', upTo: 1 }), unit(1, { kind: 'told', upTo: 1 })]
    expect(isMarkedBy([...told, missed])).toBe(true)
  })

  test('make up for nothing if they name an offset above their own: it is one of another log', () => {
    const marks = take([missed])
    for (const [number, at] of [1, 2].entries()) marks.take(unit(number, { kind: 'told', upTo: 500 }), at)
    marks.take({ kind: 'filled', ...pair, upTo: 500 }, 3)
    expect(marks.needingBackfill).toEqual([pair])
    marks.take({ kind: 'filled', ...pair, upTo: 1 }, 4)
    expect(marks.needingBackfill).toEqual([])
  })

  test('are taken in the order of the log, whatever is heard first', () => {
    const marks = take([unit(0, { kind: 'told', upTo: 1 })])
    marks.take(unit(0, { kind: 'parted' }), 5)
    marks.take(unit(0, { kind: 'told', upTo: 1 }), 3)
    expect(marks.of('crm', 'space').units.get(0)?.standing).toEqual({ kind: 'parted' })
    expect(marks.isComplete(marks.of('crm', 'space'))).toBe(false)
  })
})

test('what is missed while the log is read, after it has told of a backfill that began, is written at once', async () => {
  const log = new SimulatedLog()
  const halfRead = Promise.withResolvers<void>()
  let isToWait = false
  const keeper = new MarkKeeper({
    partitions: 2,
    async *read(from) {
      await Promise.resolve()
      yield log.records.slice(from)
      if (isToWait) await halfRead.promise
    },
    write: (record) => log.write(record),
    onMark: () => undefined,
  })
  void keeper.needsBackfill('crm', 'space')
  log.acknowledge()
  await keeper.written()
  await keeper.update()
  log.append(encodeMark({ kind: 'begun', ...pair }))
  isToWait = true
  const updating = keeper.update()
  expect(keeper.needsBackfill('crm', 'space')).toBeUndefined()
  await new Promise(setImmediate)
  expect(keeper.needsBackfill('crm', 'space')).toBeInstanceOf(Promise)
  log.acknowledge()
  halfRead.resolve()
  await updating
  expect(log.records.filter(({ key }) => decodeMark(key, Buffer.from('{}'))?.kind === 'missed')).toHaveLength(
    2,
  )
})
