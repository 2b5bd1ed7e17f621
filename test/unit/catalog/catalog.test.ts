import { describe, expect, it } from 'vitest'
import { keepUnchanged, type Catalog } from '../../../src/catalog/catalog.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'

function catalog(text: string): Catalog {
  const parsed = parseCatalog(text, { file: 'catalog.yaml' })
  if (!parsed.ok) throw new Error('a faulty catalog')
  return parsed.catalog
}

const before = catalog(`
sources: [{ id: shop }, { id: app }]
destinations:
  - { id: a, sources: [shop], hooks: [{ url: http://a, headers: { X-A: b } }] }
  - { id: b, sources: [shop, app], hooks: [{ url: http://b }] }
  - { id: gone, sources: [app], hooks: [{ url: http://gone }] }
`)

const after = catalog(`
# moved, written otherwise, and with its default
destinations:
  - id: b
    sources: [shop, app]
    hooks: [{ url: http://b, headers: { X-New: c } }]
  - id: a
    state: on
    sources: [shop]
    hooks:
      - url: http://a/
        headers:
          X-A: b
sources: [{ id: shop }, { id: app, name: App }]
`)

describe('keepUnchanged', () => {
  const kept = keepUnchanged(before, after)

  it('is equal to the new catalog', () => {
    expect(kept).toEqual(after)
  })

  it('keeps the object of a destination whose definition is the same, however it is written', () => {
    expect(kept.destinations.get('a')).toBe(before.destinations.get('a'))
    expect(kept.destinationsBySource.get('shop')).toContain(before.destinations.get('a'))
  })

  it('takes the new object of a destination that was changed', () => {
    expect(kept.destinations.get('b')).toBe(after.destinations.get('b'))
    expect(kept.destinationsBySource.get('app')).toEqual([after.destinations.get('b')])
  })

  it('keeps sources in the same way', () => {
    expect(kept.sources.get('shop')).toBe(before.sources.get('shop'))
    expect(kept.sources.get('app')).toBe(after.sources.get('app'))
  })
})
