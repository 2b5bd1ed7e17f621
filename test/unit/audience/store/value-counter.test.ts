import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { encodeEntry } from '../../../../src/audience/store/entry.ts'
import { readStates } from '../../../../src/audience/store/states-page.ts'
import { levelStores, type StateStore } from '../../../../src/audience/store/store.ts'
import { storeKeyOf } from '../../../../src/audience/store/store-keys.ts'
import { ValueCounter } from '../../../../src/audience/store/value-counter.ts'
import { standStill } from '../../../support/stand-still.ts'
import { until } from '../../../support/until.ts'

/** Tests of the counts of a unit's values, on a real store. */

let folder: string
let store: StateStore
let counter: ValueCounter
let reads = 0
let spaces: readonly string[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-counts-'))
  const opened = await levelStores.open(join(folder, 'unit-0'))
  if (!opened.ok) throw new Error('no store', { cause: opened.cause })
  ;({ store } = opened)
  spaces = ['people', 'firms']
  counter = new ValueCounter({
    statesOf: (_unit, query) => {
      reads++
      return readStates(store, query)
    },
    spaces: () => spaces,
    onFailed(error) {
      throw error
    },
    pauses: { pageMs: 1, againMs: 20, mostOfTime: 1 },
  })
})

afterEach(async () => {
  await counter.stop()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

async function put(
  spaceId: string,
  property: string,
  users: readonly string[],
  value = 'true',
): Promise<void> {
  const version = { atMs: 1, isNative: true, partition: 0, offset: 2 }
  const state = { kind: 'audience', id: 'id', name: 'name', value, version, since: version } as const
  const text = encodeEntry({ kind: 'property', state, offset: 7 }) ?? ''
  const keyOf = (userId: string) => storeKeyOf({ kind: 'property', spaceId, userId, property })
  await store.write(users.map((userId) => ({ type: 'put', key: keyOf(userId), value: text })))
}

const named = (count: number): string[] => Array.from({ length: count }, (_, index) => `u${index}`)

function countsOf(spaceId: string) {
  const found = counter.counts().find((one) => one.spaceId === spaceId)
  return found && { units: found.units, values: Object.fromEntries(found.values) }
}

test('all present values of a space are counted by property, and counted again, without those who have left', async () => {
  await put('people', 'vip', named(1_200))
  await put('people', 'loyal', named(3))
  await put('people', 'left', named(2), 'false')
  await put('firms', 'large', named(1))
  expect(countsOf('people')).toEqual({ units: 0, values: {} })
  counter.acquire(0)
  await until('both are counted', () => countsOf('firms')?.units === 1)
  expect(countsOf('people')).toEqual({ units: 1, values: { vip: 1_200, loyal: 3 } })
  expect(countsOf('firms')).toEqual({ units: 1, values: { large: 1 } })
  await put('firms', 'large', named(5))
  await until('they are counted again', () => countsOf('firms')?.values['large'] === 5)
  spaces = ['firms']
  expect(counter.counts().map(({ spaceId }) => spaceId)).toEqual(['firms'])
})

test('a unit that was left is read no more, and its counts are forgotten', async () => {
  await put('people', 'vip', named(5_000))
  counter.acquire(0)
  await until('a page was read', () => reads > 0)
  await counter.release(0)
  reads = 0
  expect(countsOf('people')).toEqual({ units: 0, values: {} })
  counter.acquire(1)
  await until('another unit is counted', () => countsOf('firms')?.units === 1)
  expect(countsOf('people')).toEqual({ units: 1, values: { vip: 5_000 } })
})

test('a page during which the process stood still does not put off the next one', async () => {
  await counter.stop()
  let isFirst = true
  counter = new ValueCounter({
    statesOf: (_unit, query) => {
      if (isFirst) standStill(1_500)
      isFirst = false
      return readStates(store, query)
    },
    spaces: () => ['people'],
    onFailed(error) {
      throw error
    },
    pauses: { pageMs: 1, againMs: 20, mostOfTime: 0.02 },
  })
  await put('people', 'vip', named(1_200))
  const startMs = performance.now()
  counter.acquire(0)
  await until('it is counted', () => countsOf('people')?.units === 1)
  expect(performance.now() - startMs).toBeLessThan(30_000)
})
