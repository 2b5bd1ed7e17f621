import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeEntry } from '../../../../src/audience/store/entry.ts'
import { Checkpoint } from '../../../../src/audience/store/checkpoint.ts'
import { KeyFilter } from '../../../../src/audience/store/key-filter.ts'
import type { LoggedState } from '../../../../src/audience/audience-ports.ts'
import { restore } from '../../../../src/audience/unit/restore.ts'
import {
  encodeDeletionFloor,
  encodeState,
  encodeStateKey,
  type StateRecord,
} from '../../../../src/audience/records/state-record.ts'
import { storeKeyOf } from '../../../../src/audience/store/store-keys.ts'
import { type Disks, MemoryStores } from '../memory-stores.ts'

const few = fc.nat({ max: 2 })

const record: fc.Arbitrary<StateRecord> = fc
  .tuple(few, few, fc.nat({ max: 5 }), fc.constantFrom('state', 'silent', 'state', 'tombstone', 'floor'))
  .map(([user, audience, atMs, what]) => {
    const userId = `user-${user}`
    const stateKey = { kind: 'property', userId, spaceId: 'space', property: `p${audience}` } as const
    const version = { atMs, isNative: true, partition: 0, offset: atMs }
    switch (what) {
      case 'floor':
        return {
          stateKey: { kind: 'deletion', userId, sourceId: 'space' },
          state: { requestedAtMs: atMs, requestId: 'r', partition: 0, offset: 0 },
        }
      case 'tombstone':
        return { stateKey, state: null }
      default: {
        const named = { kind: 'audience', id: `a${audience}`, name: 'A', value: 'true' } as const
        return { stateKey, state: { ...named, version, since: version }, isSilent: what === 'silent' }
      }
    }
  })

function loggedOf(one: StateRecord, offset: number): LoggedState {
  const key = encodeStateKey(one.stateKey)
  if (one.state === null) return { offset, key, value: null }
  if ('requestId' in one.state) return { offset, key, value: encodeDeletionFloor(one.state) }
  if ('syncId' in one.state) throw new Error('none was made')
  return { offset, key, value: encodeState(one.state, 'isSilent' in one && one.isSilent) }
}

/** Restores a unit from batches of records, and returns what its store holds then. */
async function restored(batches: readonly (readonly LoggedState[])[], isEmpty: boolean) {
  const disks: Disks = new Map()
  const opened = await new MemoryStores(disks).open('unit')
  if (!opened.ok) throw new Error('it is in memory')
  const checkpoint = new Checkpoint(0)
  const outOfOrder = await restore({
    store: opened.store,
    isEmpty,
    records: asRead(batches),
    checkpoint,
    deletions: new KeyFilter(1_024),
    meta: (position) => ({ type: 'put', key: 'm', value: String(position) }),
    onProgress: () => undefined,
  })
  const held = [...(disks.get('unit') ?? [])].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    held,
    outOfOrder: [...outOfOrder].sort(([a], [b]) => (a < b ? -1 : 1)),
    position: checkpoint.position,
  }
}

async function* asRead(batches: readonly (readonly LoggedState[])[]): AsyncGenerator<readonly LoggedState[]> {
  for (const batch of batches) yield await Promise.resolve(batch)
}

describe('restoring', () => {
  test('the highest version of each key is held, and keys whose last record is another are told', async () => {
    const states = record.filter(({ state }) => state !== null && 'version' in state)
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(states, { minLength: 1, maxLength: 5 }), { maxLength: 5 }),
        fc.boolean(),
        async (groups, isEmpty) => {
          let offset = 0
          const batches = groups.map((group) => group.map((one) => loggedOf(one, offset++)))
          const best = new Map<string, number>()
          const last = new Map<string, number>()
          for (const { stateKey, state } of groups.flat()) {
            if (state === null || !('id' in state)) continue
            const key = storeKeyOf(stateKey)
            best.set(key, Math.max(best.get(key) ?? 0, state.version.atMs))
            last.set(key, state.version.atMs)
          }
          const { held, outOfOrder } = await restored(batches, isEmpty)
          const heldMs = held.flatMap(([key, text]) => {
            const entry = key.startsWith('s') ? decodeEntry(text.toString()) : undefined
            return entry?.kind === 'property' ? [[key, entry.state.version.atMs] as const] : []
          })
          expect(new Map(heldMs)).toEqual(best)
          const wrong = [...best].filter(([key, atMs]) => last.get(key) !== atMs).map(([key]) => key)
          expect(outOfOrder.map(([key]) => key)).toEqual(wrong.toSorted())
        },
      ),
      { numRuns: 1_000 },
    )
  })

  test('leaves the same in a store that was empty, though it is not read, as in one that is read', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(record, { minLength: 1, maxLength: 5 }), { maxLength: 5 }),
        async (groups) => {
          let offset = 0
          const batches = groups.map((group) => group.map((one) => loggedOf(one, offset++)))
          expect(await restored(batches, true)).toEqual(await restored(batches, false))
        },
      ),
      { numRuns: 1_000 },
    )
  })
})
