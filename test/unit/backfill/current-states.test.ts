import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  encodeDeletionFloor,
  encodeState,
  encodeStateKey,
} from '../../../src/audience/records/state-record.ts'
import { CurrentStates, type StateFilter } from '../../../src/backfill/current-states.ts'

const everything: StateFilter = { spaceId: 's1', audienceId: undefined, property: undefined, withLeft: true }

type Entry = {
  userId: string
  property: string
  spaceId: string
  kind: 'audience' | 'trait'
  id: string
  /** The value as JSON. `undefined` stands for a tombstone. */
  value: string | undefined
  atMs: number
}

const entry: fc.Arbitrary<Entry> = fc
  .record({
    user: fc.nat({ max: 5 }),
    property: fc.constantFrom('p1', '__proto__', 'größe'),
    spaceId: fc.constantFrom('s1', 's1', 's2'),
    value: fc.constantFrom('true', 'false', undefined),
    traitValue: fc.constantFrom('1', 'null', '"a\\nb"', 'false', undefined),
    atMs: fc.nat({ max: 5 }),
  })
  .map(({ user, property, spaceId, value, traitValue, atMs }) => {
    const isTrait = property === 'größe'
    return {
      userId: `user\n${user}`,
      property,
      spaceId,
      kind: isTrait ? 'trait' : 'audience',
      id: isTrait ? 'trait_1' : `aud_${property}`,
      value: isTrait ? traitValue : value,
      atMs,
    }
  })

const versionAt = (atMs: number) => ({ atMs, isNative: true, partition: 0, offset: 1 })

function recordOf({ userId, property, spaceId, kind, id, value, atMs }: Entry, offset: number) {
  const key = encodeStateKey({ kind: 'property', userId, spaceId, property })
  const version = versionAt(atMs)
  const state = { kind, id, name: 'n', version, since: versionAt(0) }
  return {
    offset,
    key,
    value: value === undefined ? null : encodeState({ ...state, value }, false),
    timestampMs: 1_000 + offset,
  }
}

function currentOf(records: readonly ReturnType<typeof recordOf>[], filter: StateFilter) {
  const states = new CurrentStates(filter)
  try {
    for (const record of records) states.add(record)
    return Array.from({ length: CurrentStates.buckets }, (_, bucket) => states.of(bucket))
  } finally {
    states.close()
  }
}

/**
 * Returns the offsets of the current states by their definition. Of the states since the last tombstone, the
 * one with the highest version is current. If several states have this version, the last of them is current.
 */
function expected(entries: readonly Entry[], isMeant: (entry: Entry) => boolean): Set<number> {
  const held = new Map<string, { atMs: number; offset: number; entry: Entry }>()
  for (const [offset, each] of entries.entries()) {
    const key = JSON.stringify([each.userId, each.spaceId, each.property])
    const before = held.get(key)
    if (each.value === undefined) held.delete(key)
    else if (before === undefined || each.atMs >= before.atMs)
      held.set(key, { atMs: each.atMs, offset, entry: each })
  }
  return new Set([...held.values()].filter((one) => isMeant(one.entry)).map(({ offset }) => offset))
}

const offsetsOf = (buckets: ReturnType<typeof currentOf>): number[] =>
  buckets.flat().map(({ offset }) => offset)

const isOfSpace = ({ spaceId }: Entry): boolean => spaceId === 's1'

describe('the current states of a unit', () => {
  const log = fc.array(entry, { maxLength: 60 })

  test('are the highest versions since the last tombstone, each once', () => {
    fc.assert(
      fc.property(log, (entries) => {
        const found = offsetsOf(currentOf(entries.map(recordOf), everything))
        expect(found).toHaveLength(new Set(found).size)
        expect(new Set(found)).toEqual(expected(entries, isOfSpace))
      }),
      { numRuns: 1_000 },
    )
  })

  test('are members only, unless those who left are asked for', () => {
    fc.assert(
      fc.property(log, (entries) => {
        const found = offsetsOf(currentOf(entries.map(recordOf), { ...everything, withLeft: false }))
        const left = { audience: 'false', trait: 'null' }
        expect(new Set(found)).toEqual(
          expected(entries, (each) => isOfSpace(each) && each.value !== left[each.kind]),
        )
      }),
      { numRuns: 1_000 },
    )
  })

  test.each([
    ['an audience', { audienceId: 'aud_p1' }, ({ id }: Entry) => id === 'aud_p1'],
    ['a property', { property: 'größe' }, ({ property }: Entry) => property === 'größe'],
  ])('are those of %s, where it is asked for', (_what, part, isMeant) => {
    fc.assert(
      fc.property(log, (entries) => {
        const found = offsetsOf(currentOf(entries.map(recordOf), { ...everything, ...part }))
        expect(new Set(found)).toEqual(expected(entries, (each) => isOfSpace(each) && isMeant(each)))
      }),
      { numRuns: 500 },
    )
  })

  test('come in the same order each time, by offset within a bucket: a second run can go on', () => {
    fc.assert(
      fc.property(log, (entries) => {
        const records = entries.map(recordOf)
        const buckets = currentOf(records, everything)
        for (const states of buckets) {
          const offsets = states.map(({ offset }) => offset)
          expect(offsets).toEqual(offsets.toSorted((a, b) => a - b))
        }
        // Compaction may have removed superseded states meanwhile.
        const kept = expected(entries, () => true)
        const left = records.filter(({ offset, value }) => value === null || kept.has(offset))
        expect(offsetsOf(currentOf(left, everything))).toEqual(offsetsOf(buckets))
      }),
      { numRuns: 500 },
    )
  })

  test('pass over what is no state of a property', () => {
    const records = [
      { offset: 0, key: Buffer.from('x'), value: Buffer.from('y'), timestampMs: 0 },
      {
        offset: 1,
        key: encodeStateKey({ kind: 'deletion', userId: 'u', sourceId: 's1' }),
        value: encodeDeletionFloor({ requestedAtMs: 1, requestId: 'r', partition: 0, offset: 0 }),
        timestampMs: 0,
      },
      {
        offset: 2,
        key: encodeStateKey({ kind: 'property', userId: 'u', spaceId: 's1', property: 'p' }),
        value: Buffer.from('{'),
        timestampMs: 0,
      },
    ]
    expect(offsetsOf(currentOf(records, everything))).toEqual([])
  })
})
