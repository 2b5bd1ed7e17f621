import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { encodeEntry } from '../../../../src/audience/store/entry.ts'
import { readStates, type StatePlace } from '../../../../src/audience/store/states-page.ts'
import { levelStores, type StateStore } from '../../../../src/audience/store/store.ts'
import { storeKeyOf } from '../../../../src/audience/store/store-keys.ts'
import type { PropertyStateKey } from '../../../../src/audience/records/version.ts'

/** Tests of the pages of a unit's states, on a real store. */

let folder: string
let store: StateStore

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-states-'))
  const opened = await levelStores.open(join(folder, 'unit-0'))
  if (!opened.ok) throw new Error('no store', { cause: opened.cause })
  ;({ store } = opened)
})

afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

type Held = { stateKey: PropertyStateKey; kind: 'audience' | 'trait'; value: string }

async function put({ stateKey, kind, value }: Held): Promise<void> {
  const version = { atMs: 1, isNative: true, partition: 0, offset: 2 }
  const state = { kind, id: 'id', name: 'name', value, version, since: version } as const
  const text = encodeEntry({ kind: 'property', state, offset: 7 }) ?? ''
  await store.write([{ type: 'put', key: storeKeyOf(stateKey), value: text }])
}

function held(userId: string, property: string, value: string, kind: Held['kind'] = 'audience'): Held {
  return { stateKey: { kind: 'property', spaceId: 'space', userId, property }, kind, value }
}

/** Reads all states of a space, page by page. */
async function readAll(
  spaceId: string,
  { count, withLeft }: { count: number; withLeft: boolean },
): Promise<string[]> {
  const found: string[] = []
  let after: StatePlace | null = null
  do {
    const page = await readStates(store, { spaceId, after, count, withLeft })
    for (const { stateKey, state, offset } of page.states) {
      expect(offset).toBe(7)
      found.push(JSON.stringify([stateKey.spaceId, stateKey.property, stateKey.userId, state.value]))
    }
    after = page.last
  } while (after !== null)
  return found
}

const id = fc.string({
  minLength: 1,
  maxLength: 4,
  unit: fc.constantFrom('a', '\0', '\u007f', '\u0080', '\ud7ff', '\uffff', '👩', 'é'),
})

describe('pages of states', () => {
  test('have each state of the space once, whatever the ids are and however large a page is', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.tuple(id, id), { selector: (pair) => JSON.stringify(pair), maxLength: 12 }),
        fc.array(fc.tuple(id, id), { maxLength: 3 }),
        fc.integer({ min: 1, max: 5 }),
        async (ours, others, count) => {
          for (const [key] of await keysOf()) await store.write([{ type: 'del', key }])
          for (const [property, userId] of ours) await put(held(userId, property, 'true'))
          for (const [property, userId] of others) {
            const stateKey = { kind: 'property', spaceId: 'space2', property, userId } as const
            await put({ stateKey, kind: 'audience', value: 'true' })
          }
          const found = await readAll('space', { count, withLeft: false })
          const expected = ours.map(([property, userId]) =>
            JSON.stringify(['space', property, userId, 'true']),
          )
          expect(found.toSorted()).toEqual(expected.toSorted())
        },
      ),
      { numRuns: 150 },
    )
  })

  test('leave out who has left and traits without a value, unless these are asked for', async () => {
    await put(held('in', 'vip', 'true'))
    await put(held('out', 'vip', 'false'))
    await put(held('in', 'ltv', 'false', 'trait'))
    await put(held('out', 'ltv', 'null', 'trait'))
    const present = [
      JSON.stringify(['space', 'ltv', 'in', 'false']),
      JSON.stringify(['space', 'vip', 'in', 'true']),
    ]
    expect(await readAll('space', { count: 2, withLeft: false })).toEqual(present)
    expect(await readAll('space', { count: 2, withLeft: true })).toHaveLength(4)
    expect(await readAll('other', { count: 2, withLeft: true })).toEqual([])
  })
})

async function keysOf(): Promise<readonly (readonly [string, string])[]> {
  const reader = store.range({ from: '', to: '\uffff' })
  const entries: (readonly [string, string])[] = []
  for (let some = await reader.next(100); some.length > 0; some = await reader.next(100))
    entries.push(...some)
  await reader.close()
  return entries
}
