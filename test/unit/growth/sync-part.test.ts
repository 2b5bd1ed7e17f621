import { expect, test } from 'vitest'
import { encodeStateKey, encodeSyncFloor } from '../../../src/audience/records/state-record.ts'
import { SyncFloors } from '../../../src/growth/merged-sync-floors.ts'
import { mayBeSyncPart } from '../../../src/growth/sync-part.ts'

const bytes = (text: string | null): Buffer | null => (text === null ? null : Buffer.from(text))

test.each([
  ['a part', null, '{"type":"sync"}', true],
  ['a change', 'u1', '{"type":"membership"}', false],
  ['a framed record without a key', null, '\u0000framed', true],
  ['a framed record of a user', 'u1', '\u0000framed', false],
  ['what nobody can read', null, 'nothing', false],
  ['a tombstone', 'u1', null, false],
])('%s is told by its type, or by its key', (_what, key, value, expected) => {
  expect(mayBeSyncPart(bytes(key), bytes(value))).toBe(expected)
})

test('an audience is uneven where units have another last sync, or none', () => {
  const floors = new SyncFloors()
  const take = (unit: number, audienceId: string, atMs: number): void =>
    floors.take(
      unit,
      encodeStateKey({ kind: 'sync', spaceId: 's', audienceId }),
      encodeSyncFloor({
        version: { atMs, isNative: true, partition: unit, offset: unit },
        syncId: `sync-${atMs}`,
      }),
    )
  for (const unit of [0, 1, 2]) take(unit, 'even', 5)
  for (const unit of [0, 1, 2]) take(unit, 'behind', 5)
  take(0, 'behind', 6)
  take(2, 'behind', 6)
  take(1, 'missing', 5)
  expect(floors.uneven(3)).toEqual([
    { spaceId: 's', audienceId: 'behind', units: [1] },
    { spaceId: 's', audienceId: 'missing', units: [0, 2] },
  ])
})
