import * as fc from 'fast-check'
import { Compile } from 'typebox/compile'
import { describe, expect, test } from 'vitest'
import { type ChangePlace, readChange } from '../../../../src/audience/records/change-record.ts'
import { readDeletion } from '../../../../src/audience/records/deletion-request.ts'
import { audienceChangeSchema } from '../../../../src/message/audience-change.ts'
import { defaultLimits } from '../../../../src/message/limits.ts'
import { partitionOf } from '../../../../src/message/partitioner.ts'

const schema = Compile(audienceChangeSchema)
const rules = { limits: defaultLimits, partitions: 4 }
const appendedMs = Date.parse('2026-01-01T00:00:00Z')
const userId = 'user-1'
const home = partitionOf(userId, 4)
const place: ChangePlace = {
  spaceId: 'space',
  partition: home,
  offset: 7,
  timestampMs: appendedMs,
  origin: undefined,
}
const membership = {
  type: 'membership',
  audienceId: 'a1',
  audienceName: 'Big spenders 30days',
  userId,
  member: true,
  changedAt: '2025-12-31T23:59:00Z',
}
const trait = {
  type: 'trait',
  traitId: 't1',
  traitName: 'LTV',
  userId,
  value: 1,
  changedAt: '2025-12-31T00:00:00Z',
}
const sync = {
  type: 'sync',
  audienceId: 'a1',
  audienceName: 'Big spenders',
  syncId: 's1',
  snapshotAt: '2025-12-31T00:00:00Z',
  part: 1,
  parts: 2,
  userIds: [userId],
}

function read(value: unknown, at: Partial<ChangePlace> = {}) {
  const bytes = typeof value === 'string' ? Buffer.from(value) : Buffer.from(JSON.stringify(value))
  return readChange(bytes, { ...place, ...at }, rules)
}

function reasonOf(value: unknown): string {
  const result = read(value)
  return result.ok ? 'none' : result.reason
}

const formerPartitions =
  Array.from({ length: 64 }, (_, index) => index + 1).find(
    (partitions) => partitionOf(userId, partitions) !== home,
  ) ?? 0
const formerHome = partitionOf(userId, formerPartitions)

function versionOf(at: Partial<ChangePlace>, given: object) {
  const bytes = Buffer.from(JSON.stringify(membership))
  const result = readChange(bytes, { ...place, ...at }, { ...rules, ...given })
  return result.ok && result.kind === 'change' ? result.change.version : undefined
}

describe('a change from before a growth', () => {
  test('has the version that it had in the partition that was its user’s, where it is and when it was moved', () => {
    const before = versionOf({ partition: formerHome, offset: 9 }, { partitions: formerPartitions })
    expect(before?.isNative).toBe(true)
    expect(versionOf({ partition: formerHome, offset: 9 }, { formerPartitions })).toEqual(before)
    const moved = { partition: home, offset: 70, origin: { partition: formerHome, offset: 9 } }
    expect(versionOf(moved, { formerPartitions })).toEqual(before)
  })

  test('has the lower version of one in a wrong partition where nothing was grown', () => {
    expect(versionOf({ partition: formerHome, offset: 9 }, {})?.isNative).toBe(false)
  })
})

describe('a change', () => {
  test('is read with the version of its record', () => {
    expect(read(membership)).toEqual({
      ok: true,
      kind: 'change',
      change: {
        stateKey: { kind: 'property', userId, spaceId: 'space', property: 'big_spenders_30days' },
        kind: 'audience',
        id: 'a1',
        name: 'Big spenders 30days',
        value: 'true',
        version: { atMs: Date.parse(membership.changedAt), isNative: true, partition: home, offset: 7 },
        unit: home,
      },
    })
  })

  test.each([null, 0, -1.5, '', 'text', false, [], [1, { a: 2 }], {}, { b: 1, a: [null] }])(
    'a trait may be %j',
    (value) => {
      const result = read({ ...trait, value })
      expect(result.ok && result.kind === 'change' && result.change.value).toBe(JSON.stringify(value))
    },
  )

  test('one that was moved keeps its first place, and is none of its own partition', () => {
    const result = read(membership, { origin: { partition: 3, offset: 99 } })
    expect(result.ok && result.kind === 'change' && result.change.version).toEqual({
      atMs: Date.parse(membership.changedAt),
      isNative: false,
      partition: 3,
      offset: 99,
    })
  })

  test('a part of a sync is read', () => {
    const result = read(sync)
    expect(result).toMatchObject({
      ok: true,
      kind: 'part',
      part: { part: 1, parts: 2, userIds: [userId], property: 'big_spenders' },
    })
  })

  test.each([
    ['a membership', membership, 'audienceKey'],
    ['a trait', trait, 'traitKey'],
    ['a part of a sync', sync, 'audienceKey'],
  ])('a null as the key of %s is read as none', (_what, given, key) => {
    expect(read({ ...given, [key]: null })).toEqual(read(given))
    expect(read(given).ok).toBe(true)
    expect(schema.Check({ ...given, [key]: null })).toBe(true)
  })

  test.each([
    ['a membership', membership],
    ['a trait', trait],
    ['a part of a sync', sync],
  ])('a null in another field of %s is refused', (_what, given) => {
    const fields = Object.keys(given).filter((field) => field !== 'type' && field !== 'value')
    for (const field of fields) {
      expect([field, reasonOf({ ...given, [field]: null })]).toEqual([field, 'bad_change'])
      expect(schema.Check({ ...given, [field]: null })).toBe(false)
    }
  })

  test.each<[string, unknown, string]>([
    ['no JSON', '{', 'not_json'],
    ['no object', '[]', 'not_json'],
    ['another type', { type: 'page' }, 'bad_change'],
    ['a field too many', { ...membership, extra: 1 }, 'bad_change'],
    ['no user', { ...membership, userId: '' }, 'bad_change'],
    ['no value', { ...trait, value: undefined }, 'bad_change'],
    ['a name of symbols', { ...membership, audienceName: '!!!' }, 'bad_property_name'],
    ['no such day', { ...membership, changedAt: '2025-02-30' }, 'bad_timestamp'],
    ['a time that is to come', { ...membership, changedAt: '2026-01-01T00:05:01Z' }, 'ahead_of_time'],
    ['a snapshot that is to come', { ...sync, snapshotAt: '2026-01-01T00:05:01Z' }, 'ahead_of_time'],
    ['a part above the parts', { ...sync, part: 3 }, 'bad_change'],
    ['too many parts', { ...sync, parts: 1_000_000 }, 'sync_too_large'],
    [
      'an infinite number',
      JSON.stringify({ ...trait, value: 7 }).replace(':7', ':1e999'),
      'number_out_of_range',
    ],
    [
      'too many levels',
      { ...trait, value: JSON.parse('['.repeat(120) + ']'.repeat(120)) },
      'nested_too_deep',
    ],
    ['too much', { ...trait, value: 'x'.repeat(1_100_000) }, 'body_too_large'],
    [
      'too much when its numbers are written out',
      JSON.stringify({ ...trait, value: 7 }).replace(':7', `:[${'1e20,'.repeat(60_000)}1]`),
      'body_too_large',
    ],
    ['nothing', '', 'empty_value'],
  ])('%s is refused', (_what, value, reason) => {
    expect(reasonOf(value)).toBe(reason)
  })

  test('five minutes ahead are allowed', () => {
    expect(reasonOf({ ...membership, changedAt: '2026-01-01T00:05:00Z' })).toBe('none')
  })

  test('bytes that are no UTF-8 are refused', () => {
    const result = readChange(Buffer.from([0x7b, 0xff, 0x7d]), place, rules)
    expect(result).toMatchObject({ ok: false, reason: 'not_utf8' })
  })

  test('a refusal says what to do, and quotes nothing', () => {
    fc.assert(
      fc.property(fc.object(), fc.constantFrom('membership', 'trait', 'sync'), (fields, type) => {
        const result = read({ ...fields, type, userId: 'secret-user' })
        if (result.ok) return
        expect(result.detail.length).toBeLessThan(500)
        expect(result.detail).not.toContain('secret-user')
      }),
      { numRuns: 1_000 },
    )
  })

  test('a name __proto__ comes through, in values too', () => {
    const text = `{"type":"trait","traitId":"t","traitName":"x","traitKey":"__proto__","userId":"${userId}","value":{"__proto__":{"a":1}},"changedAt":"2025-12-31T00:00:00Z"}`
    const result = read(text)
    expect(result.ok && result.kind === 'change' && result.change.value).toBe('{"__proto__":{"a":1}}')
    expect(result.ok && result.kind === 'change' && result.change.stateKey.property).toBe('__proto__')
  })
})

const request = { requestId: 'r1', userId, sources: ['space', 'web'], requestedAt: '2025-12-31T00:00:00Z' }
const readIt = (value: unknown) => readDeletion(Buffer.from(JSON.stringify(value)), appendedMs, defaultLimits)

describe('a deletion', () => {
  test('is read', () => {
    expect(readIt(request)).toEqual({
      ok: true,
      request: {
        requestId: 'r1',
        userId,
        sources: ['space', 'web'],
        requestedAtMs: Date.parse(request.requestedAt),
      },
    })
  })

  test.each<[string, unknown, string]>([
    ['no source', { ...request, sources: [] }, 'bad_deletion'],
    ['a request without a name', { ...request, requestId: '' }, 'bad_deletion'],
    ['no such day', { ...request, requestedAt: '2025-02-30' }, 'bad_timestamp'],
    ['a time that is to come', { ...request, requestedAt: '2026-01-02' }, 'ahead_of_time'],
  ])('%s is refused', (_what, value, reason) => {
    const result = readIt(value)
    expect(result.ok ? 'none' : result.reason).toBe(reason)
  })
})
