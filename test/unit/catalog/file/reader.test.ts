import { expect, it } from 'vitest'
import { parseCatalog } from '../../../../src/catalog/parse.ts'
import { readCatalogText } from '../../../../src/catalog/file/reader.ts'

/** Returns a catalog of more than 64 KiB, which is read in a thread. */
function largeCatalog(last: string): string {
  const destinations = Array.from(
    { length: 1_000 },
    (_, index) =>
      `  - id: d${index}\n    sources: [shop]\n    sharedSecret: \${CATALOG_X}\n    hooks: [{ url: http://example.com/${index} }]\n`,
  )
  return `sources: [{ id: shop }]\ndestinations:\n${destinations.join('')}${last}`
}

const variables = { CATALOG_X: 's3cret' }

it('gives for a large catalog what it gives for a small one', async () => {
  const text = largeCatalog('')
  const read = await readCatalogText(text, { file: 'catalog.yaml', variables })
  expect(read).toEqual(parseCatalog(text, { file: 'catalog.yaml', variables }))
  if (!read.ok) throw new Error('refused')
  const { destinations, destinationsBySource } = read.catalog
  expect(destinationsBySource.get('shop')?.[7]).toBe(destinations.get('d7'))
})

function ids(count: number): object[] {
  return Array.from({ length: count }, (_, index) => ({ id: `s${index}` }))
}

it('gives all parts of a large catalog of JSON', async () => {
  const hooks = [{ url: 'http://example.com/' }]
  const destinations = ids(600).map((one, index) => ({ ...one, sources: [`s${index * 4}`], hooks }))
  const text = JSON.stringify({ sources: ids(2_500), destinations })
  expect(text.length).toBeGreaterThan(64 * 1024)
  const read = await readCatalogText(text, { file: 'catalog.json', variables })
  expect(read).toEqual(parseCatalog(text, { file: 'catalog.json', variables }))
  expect(read.ok && [read.catalog.sources.size, read.catalog.destinations.size]).toEqual([2_500, 600])
})

it('names the faults of a large catalog', async () => {
  const text = largeCatalog('  - id: d7\n')
  const read = await readCatalogText(text, { file: 'catalog.yaml', variables })
  expect(read.ok ? [] : read.faults.map(({ path }) => path)).toEqual([
    'destinations[1000].sources',
    'destinations[1000].hooks',
    'destinations[1000].id',
  ])
})

it('leaves the event loop alone while it reads a large catalog', async () => {
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  await readCatalogText(largeCatalog(''), { file: 'catalog.yaml', variables })
  clearInterval(timer)
  expect(turns).toBeGreaterThan(10)
})
