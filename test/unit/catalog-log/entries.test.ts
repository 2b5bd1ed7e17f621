import { expect, test } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { Definitions } from '../../../src/catalog-log/definitions.ts'
import { Entries } from '../../../src/catalog-log/entries.ts'
import type { ChangeSet, StoredObject } from '../../../src/catalog-log/log.ts'
import { catalogKeys } from '../../support/catalog-log.ts'

const definitions = new Definitions('test', catalogKeys())
const head = { revision: 2, changeId: 'c', atMs: 1, by: 'ann', counts: { source: 0, destination: 0 } }

function stored(id: string, hooks: unknown = [{ url: `https://example.com/${id}` }]): StoredObject {
  const name = { kind: 'destination', id } as const
  const plain = { id, sources: ['shop'], hooks }
  return {
    ...name,
    version: 1,
    revision: 1,
    definition: definitions.stored(name, plain, { earlier: undefined, atMs: 1 }),
  }
}

function setOf(put: readonly StoredObject[], removed: ChangeSet['removed'] = []): ChangeSet {
  return { head, put, removed }
}

function entriesOf() {
  const told: string[] = []
  const onUnusable = ({ id }: { readonly id: string }): void => void told.push(id)
  return { told, entries: new Entries({ definitions, topic: 'catalog', onUnusable }) }
}

const empty = createCatalog([], [], 'r0')

test('an object that can not be used is told, and takes no other with it', async () => {
  const { told, entries } = entriesOf()
  const objects = Array.from({ length: 40 }, (_, index) => stored(`d${index}`))
  const faulty = objects.with(7, stored('d7', [])).with(23, { ...stored('d23'), id: 'other' })
  const catalog = await entries.next(empty, [setOf(faulty)])
  expect(catalog.destinations.size).toBe(38)
  expect(told).toEqual(['d7', 'other'])
  expect([...entries.unusable.keys()]).toEqual(['destination/d7', 'destination/other'])
  const mended = await entries.next(catalog, [setOf([stored('d7')])])
  expect(mended.destinations.has('d7')).toBe(true)
  expect([...entries.unusable.keys()]).toEqual(['destination/other'])
})

test('of several changes of an object the last one counts', async () => {
  const { entries } = entriesOf()
  const sets = [
    setOf([stored('a'), stored('b')]),
    setOf([], [{ kind: 'destination', id: 'a' }]),
    setOf([stored('c')]),
  ]
  const catalog = await entries.next(empty, [
    ...sets,
    setOf([stored('b', [{ url: 'https://example.org/' }])]),
  ])
  expect([...catalog.destinations.keys()]).toEqual(['b', 'c'])
  expect(catalog.destinations.get('b')?.hooks[0]?.url).toBe('https://example.org/')
})

test('while thousands of entries are made, other work goes on', async () => {
  const { entries } = entriesOf()
  const objects = Array.from({ length: 2_000 }, (_, index) => stored(`d${index}`))
  let turns = 0
  let isDone = false
  const turn = (): void => {
    turns++
    if (!isDone) setImmediate(turn)
  }
  setImmediate(turn)
  const catalog = await entries.next(empty, [setOf(objects)])
  isDone = true
  expect(catalog.destinations.size).toBe(2_000)
  // A piece takes 5 ms, and all of it at least 100 ms.
  expect(turns).toBeGreaterThan(10)
})

test('a change set of thousands of objects lets other work run meanwhile, and nobody sees half of it', async () => {
  const { entries } = entriesOf()
  const before = createCatalog([], [], 'r1')
  const objects = Array.from({ length: 3_000 }, (_, index) => stored(`d${index}`))
  let turns = 0
  let isDone = false
  const turn = (): void => {
    turns++
    expect(before.destinations.size).toBe(0)
    if (!isDone) setImmediate(turn)
  }
  setImmediate(turn)
  const catalog = await entries.next(before, [setOf(objects)])
  isDone = true
  expect(catalog.destinations.size).toBe(3_000)
  // An object takes about a tenth of a millisecond, and a piece two.
  expect(turns).toBeGreaterThan(20)
})
