import { execFileSync } from 'node:child_process'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Repeats } from '../../../src/repeats/repeats.ts'

const runs = { numRuns: 1_000 }
const hour = 3_600_000
const startMs = 1_700_000_000_000

/**
 * Returns a filter and a function that asks it. Records are of one partition and one source, unless the test
 * says otherwise.
 */
function seen({ windowMs = 24 * hour, messages = 100 } = {}) {
  const repeats = new Repeats({ windowMs, messages })
  return {
    repeats,
    isRepeat: (id: string, offset: number, { partition = 3, source = 'shop', afterMs = 0 } = {}) =>
      repeats.isRepeat({ partition, offset, timestampMs: startMs + afterMs }, source, id),
  }
}

describe('a message is a repeat', () => {
  test('when its id came before', () => {
    const { isRepeat } = seen()
    expect([isRepeat('a', 1), isRepeat('b', 2), isRepeat('a', 3), isRepeat('a', 4)]).toEqual([
      false,
      false,
      true,
      true,
    ])
  })

  test('until the window is over, which begins with its first record', () => {
    const { isRepeat } = seen({ windowMs: 10_000 })
    expect(isRepeat('a', 1)).toBe(false)
    expect(isRepeat('a', 2, { afterMs: 9_000 })).toBe(true)
    expect(isRepeat('a', 3, { afterMs: 10_000 })).toBe(false)
    expect(isRepeat('a', 4, { afterMs: 19_000 })).toBe(true)
  })

  test.each(['ü', '漢字', '😀', '\ud800', 'x'.repeat(100), '😀'.repeat(100), '\0', '__proto__'])(
    'with the id %j',
    (id) => {
      const { isRepeat } = seen()
      expect([isRepeat(id, 1), isRepeat(`${id}.`, 2), isRepeat(id, 3)]).toEqual([false, false, true])
    },
  )

  test('however long its id is, and that of the one between', () => {
    for (let length = 1; length <= 200; length++) {
      const { isRepeat } = seen()
      const id = 'i'.repeat(length)
      expect([isRepeat(id, 1), isRepeat('x'.repeat(200), 2), isRepeat(id, 3)]).toEqual([false, false, true])
    }
  })

  test('whatever its offset is', () => {
    const { isRepeat } = seen()
    const high = Number.MAX_SAFE_INTEGER - 1
    expect([isRepeat('a', high), isRepeat('a', high), isRepeat('a', high + 1)]).toEqual([false, false, true])
    expect([isRepeat('b', 2 ** 32 - 1), isRepeat('b', 2 ** 32)]).toEqual([false, true])
  })
})

describe('a message is none', () => {
  test.each([
    ['of another source', { source: 'app' }],
    ['of another partition', { partition: 4 }],
    ['much older, by a clock that was wrong', { afterMs: -25 * hour }],
  ])('%s', (_what, where) => {
    const { isRepeat } = seen()
    expect([isRepeat('a', 1), isRepeat('a', 2, where)]).toEqual([false, false])
  })

  test('when it is the same record, however often that comes', () => {
    const { isRepeat } = seen()
    expect([isRepeat('a', 1), isRepeat('a', 1), isRepeat('a', 1)]).toEqual([false, false, false])
  })

  test('when the group was put back before the record that brought its id', () => {
    const { isRepeat } = seen()
    expect([isRepeat('a', 5), isRepeat('a', 2), isRepeat('a', 5)]).toEqual([false, false, true])
  })

  test('when as many others have come since as are remembered', () => {
    const { isRepeat } = seen({ messages: 3 })
    expect(['a', 'b', 'c', 'd'].map((id, offset) => isRepeat(id, offset))).toEqual([
      false,
      false,
      false,
      false,
    ])
    expect([isRepeat('b', 10), isRepeat('a', 11)]).toEqual([true, false])
  })

  test('when its partition was lost since', () => {
    const { repeats, isRepeat } = seen()
    isRepeat('a', 1)
    isRepeat('a', 1, { partition: 4 })
    repeats.keepOnly([4, 5])
    expect([isRepeat('a', 2), isRepeat('a', 2, { partition: 4 })]).toEqual([false, true])
  })

  test('when its id is longer than any', () => {
    const { isRepeat } = seen()
    const long = 'x'.repeat(201)
    expect([isRepeat(long, 1), isRepeat(long, 2)]).toEqual([false, false])
  })

  test.each([
    ['the bytes of a wide id', '漢', '\u0022\u006f'],
    ['an id that ends in zeros', 'a', 'a\0\0\0'],
    ['the beginning of another', 'message-1', 'message-1'.slice(0, -1)],
    ['an id of the same length as the one before', 'longer-than-a-block', 'longer-than-a-blocK'],
  ])('when its id has %s', (_what, first, second) => {
    const { isRepeat } = seen()
    expect([isRepeat(first, 1), isRepeat(second, 2)]).toEqual([false, false])
  })
})

test('its memory is taken once: 36 to 40 bytes a message', () => {
  expect(new Repeats({ windowMs: hour, messages: 1 << 16 }).bytes).toBe(36 << 16)
  expect(new Repeats({ windowMs: hour, messages: 40_000 }).bytes / 40_000).toBeLessThan(40)
})

test('its memory is used from the first messages on, not while there are none, nor bit by bit', () => {
  const program = `
    import { Repeats } from '${new URL('../../../src/repeats/repeats.ts', import.meta.url).href}'
    const usedMb = (fromBytes) => (process.memoryUsage.rss() - fromBytes) / 1024 ** 2
    const before = process.memoryUsage.rss()
    const repeats = new Repeats({ windowMs: 3_600_000, messages: 4_000_000 })
    const idle = usedMb(before)
    for (let offset = 0; offset < 10_000; offset++)
      repeats.isRepeat({ partition: 0, offset, timestampMs: 1e12 }, 'shop', String(offset))
    console.log(idle, usedMb(before))`
  const args = ['--input-type=module', '--eval', program]
  const output = execFileSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 })
  const [idle, inUse] = output.split(' ').map(Number)
  expect(idle).toBeLessThan(20)
  expect(inUse).toBeGreaterThan(120)
})

test('it says how many messages it remembers, and how far back it reaches', () => {
  const { repeats, isRepeat } = seen({ messages: 2 })
  expect([repeats.count, repeats.reachMs(startMs)]).toEqual([0, 24 * hour])
  isRepeat('a', 1)
  isRepeat('a', 2)
  expect([repeats.count, repeats.reachMs(startMs)]).toEqual([1, 24 * hour])
  isRepeat('b', 3, { afterMs: 10_000 })
  expect([repeats.count, repeats.reachMs(startMs + 30_000)]).toEqual([2, 30_000])
  isRepeat('c', 4, { afterMs: 20_000 })
  expect([repeats.count, repeats.reachMs(startMs + 30_000)]).toEqual([2, 20_000])
  expect(repeats.reachMs(startMs + 48 * hour)).toBe(24 * hour)
})

test('the last ones are known, however many have come', () => {
  const { isRepeat } = seen({ messages: 3 })
  for (let offset = 0; offset < 1_000; offset++) {
    expect(isRepeat(String(offset), offset)).toBe(false)
    const last = [offset, offset - 1, offset - 2].filter((number) => number >= 0)
    expect(last.filter((number) => !isRepeat(String(number), 1_000))).toEqual([])
  }
})

type Step =
  | { kind: 'record'; partition: number; source: string; id: string; offset: number; atS: number }
  | { kind: 'keep'; units: readonly number[] }

type Kept = { partition: number; source: string; id: string; offset: number; atS: number }

/** A model of what `Repeats` promises. It is a list that is searched from its end. */
class Model {
  readonly #windowS: number
  readonly #messages: number
  #kept: (Kept | undefined)[] = []

  constructor(windowS: number, messages: number) {
    this.#windowS = windowS
    this.#messages = messages
  }

  keepOnly(units: readonly number[]): void {
    this.#kept = this.#kept.map((kept) =>
      kept !== undefined && units.includes(kept.partition) ? kept : undefined,
    )
  }

  isRepeat(record: Kept): boolean {
    const first = this.#kept.findLast(
      (kept) =>
        kept?.partition === record.partition && kept.source === record.source && kept.id === record.id,
    )
    if (first !== undefined && first.offset >= record.offset) {
      Object.assign(first, {
        offset: record.offset,
        atS: first.offset === record.offset ? first.atS : record.atS,
      })
      return false
    }
    if (first !== undefined && Math.abs(record.atS - first.atS) < this.#windowS) return true
    this.#kept = [...this.#kept, { ...record }].slice(-this.#messages)
    return false
  }
}

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 15,
    arbitrary: fc.record({
      kind: fc.constant('record' as const),
      partition: fc.nat(2),
      source: fc.constantFrom('a', 'b', ''),
      id: fc.constantFrom('1', '2', '3', '4', '5', 'é', '漢', '1\0', '\ud83d'),
      offset: fc.oneof(fc.nat(30), fc.constantFrom(2 ** 32, 2 ** 32 + 1, 2 ** 40)),
      atS: fc.nat(40),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('keep' as const),
      units: fc.uniqueArray(fc.nat(2)),
    }),
  },
)

test('whatever comes, it answers as the list that it stands for', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 30 }),
      fc.array(step, { maxLength: 300 }),
      (windowS, messages, steps) => {
        const repeats = new Repeats({ windowMs: windowS * 1_000, messages })
        const model = new Model(windowS, messages)
        for (const [index, one] of steps.entries()) {
          if (one.kind === 'keep') {
            repeats.keepOnly(one.units)
            model.keepOnly(one.units)
            continue
          }
          const { partition, offset, source, id, atS } = one
          const isRepeat = repeats.isRepeat({ partition, offset, timestampMs: atS * 1_000 }, source, id)
          expect({ index, isRepeat }).toEqual({ index, isRepeat: model.isRepeat(one) })
        }
      },
    ),
    runs,
  )
})

test('of 100,000 ids that differ in a character none is taken for another', () => {
  const { isRepeat } = seen({ messages: 100_000 })
  const ids = Array.from({ length: 100_000 }, (_, index) => `00000000-0000-4000-8000-${index}`)
  expect(ids.filter((id, offset) => isRepeat(id, offset))).toEqual([])
  expect(ids.filter((id, offset) => !isRepeat(id, 100_000 + offset))).toEqual([])
})
