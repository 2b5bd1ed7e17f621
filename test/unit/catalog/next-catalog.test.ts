import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { createCatalog, type Catalog, type Destination, type Source } from '../../../src/catalog/catalog.ts'
import {
  type CatalogPatch,
  changedDestinations,
  DestinationCount,
  nextCatalog,
  stateCountsOf,
} from '../../../src/catalog/next-catalog.ts'
import { parseCatalogData } from '../../../src/catalog/parse.ts'

const sourceIds = ['shop', 'app', 'old', 'new']

function catalogOf(sources: readonly string[], destinations: readonly object[]): Catalog {
  const parsed = parseCatalogData(
    { sources: sources.map((id) => ({ id })), destinations },
    { file: 'catalog', version: '' },
  )
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults))
  return parsed.catalog
}

function destination(id: string, sources: readonly string[], state: string): Destination {
  const hooks = [{ url: `https://${id}.example.com/` }]
  const made = catalogOf(sourceIds, [{ id, sources, state, hooks }]).destinations.get(id)
  return made ?? expect.fail()
}

const source = (id: string): Source => catalogOf([id], []).sources.get(id) ?? expect.fail()

/** One change set: destinations that are put or removed, and sometimes a source. */
const change = fc.record({
  destinations: fc.dictionary(
    fc.integer({ min: 0, max: 400 }).map((number) => `d${number}`),
    fc.option(
      fc.record({
        sources: fc.uniqueArray(fc.constantFrom(...sourceIds), { maxLength: 3 }),
        state: fc.constantFrom('on', 'off', 'paused'),
      }),
    ),
    { maxKeys: 60 },
  ),
  newSource: fc.option(fc.constantFrom('old', 'new'), { freq: 10 }),
})

function plain({ sources, destinations, destinationsBySource, version }: Catalog) {
  return {
    sources: [...sources],
    destinations: [...destinations],
    lists: new Map([...destinationsBySource].map(([id, list]) => [id, list.map((one) => one.id)])),
    sizes: [sources.size, destinations.size],
    version,
  }
}

function sorted(lists: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, readonly string[]> {
  return new Map([...lists].map(([id, list]) => [id, list.toSorted()]))
}

test('however often a catalog is patched, it is the catalog that is made of all its entries', () => {
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 30 }), (changes) => {
      const sources = new Map([source('shop'), source('app')].map((one) => [one.id, one]))
      const destinations = new Map<string, Destination>()
      const on = new DestinationCount(({ state }) => state === 'on')
      let catalog = createCatalog([...sources.values()], [], '0')
      for (const [index, { destinations: given, newSource }] of changes.entries()) {
        const patch: CatalogPatch = {
          sources: new Map(newSource === null ? [] : [[newSource, source(newSource)]]),
          destinations: new Map(
            Object.entries(given).map(([id, fields]) => [
              id,
              fields === null ? undefined : destination(id, fields.sources, fields.state),
            ]),
          ),
        }
        for (const [id, one] of patch.sources) if (one !== undefined) sources.set(id, one)
        for (const [id, one] of patch.destinations) {
          if (one === undefined) destinations.delete(id)
          else destinations.set(id, one)
        }
        const before = catalog
        catalog = nextCatalog(before, patch, String(index))
        const whole = createCatalog([...sources.values()], [...destinations.values()], String(index))
        const [made, expected] = [plain(catalog), plain(whole)]
        expect(made.sizes).toEqual(expected.sizes)
        expect(new Map(made.destinations)).toEqual(new Map(expected.destinations))
        expect(new Map(made.sources)).toEqual(new Map(expected.sources))
        expect(sorted(made.lists)).toEqual(sorted(expected.lists))
        expect(stateCountsOf(catalog)).toEqual(stateCountsOf(whole))
        expect(on.in(catalog)).toBe(stateCountsOf(whole).on)
        const changed = new Set(changedDestinations(before, catalog))
        for (const id of new Set([...before.destinations.keys(), ...catalog.destinations.keys()]))
          if (before.destinations.get(id) !== catalog.destinations.get(id)) expect(changed).toContain(id)
      }
    }),
    { numRuns: 40 },
  )
})

test('a changed destination keeps its place, also in the lists of its sources', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((id) => destination(id, ['shop'], 'on'))
  const before = createCatalog(
    [source('shop')],
    [a, b, c].filter((one) => one !== undefined),
    '1',
  )
  const paused = destination('b', ['shop'], 'paused')
  const next = nextCatalog(before, { sources: new Map(), destinations: new Map([['b', paused]]) }, '2')
  expect([...next.destinations.keys()]).toEqual(['a', 'b', 'c'])
  expect(next.destinationsBySource.get('shop')?.map(({ id, state }) => [id, state])).toEqual([
    ['a', 'on'],
    ['b', 'paused'],
    ['c', 'on'],
  ])
  expect([...changedDestinations(before, next)]).toEqual(['b'])
  expect([...changedDestinations(next, before)].toSorted()).toEqual(['a', 'b', 'c'])
})
