import { expect, test } from 'vitest'
import { type Catalog, keepUnchanged } from '../../../src/catalog/catalog.ts'
import { changesBetween } from '../../../src/catalog/changes.ts'
import { outlineOf } from '../../../src/catalog/outline.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'

function catalogOf(text: string): Catalog {
  const parsed = parseCatalog(text, { file: 'catalog.yaml' })
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults))
  return parsed.catalog
}

const before = catalogOf(`
sources: [{ id: shop, writeKeys: [one] }, { id: app }, { id: old }]
destinations:
  - { id: customer-3, sources: [shop], hooks: [{ url: https://example.com/3 }] }
  - { id: customer-4, sources: [shop], sharedSecret: first-secret, hooks: [{ url: https://example.com/4 }] }
  - { id: customer-5, sources: [shop], hooks: [{ url: https://example.com/5 }] }
  - { id: customer-9, sources: [shop], hooks: [{ url: https://example.com/9 }] }
`)
const after = catalogOf(`
sources: [{ id: shop, writeKeys: [two] }, { id: app, enabled: false }]
destinations:
  - { id: customer-3, state: paused, sources: [shop], hooks: [{ url: https://example.com/3 }] }
  - { id: customer-4, sources: [shop], sharedSecret: second-secret, autoPause: 1h, maxInFlight: 3, hooks: [{ url: https://example.com/second-path }] }
  - { id: customer-5, sources: [shop], hooks: [{ url: https://example.com/5 }] }
  - { id: customer-new, sources: [shop], hooks: [{ url: https://example.com/new }] }
`)

function changes(next: Catalog, most?: number) {
  const catalog = keepUnchanged(before, next)
  const was = { outline: outlineOf(before), catalog: before }
  return changesBetween(was, { outline: outlineOf(catalog), catalog }, most)
}

test('each change is named: what was removed, has another state, was added, or has other fields', () => {
  expect(changes(after)).toEqual({
    destinations: [
      '-customer-9',
      'customer-3: on → paused',
      '+customer-new',
      'customer-4: sharedSecret, maxInFlight, autoPause, hooks',
    ],
    sources: ['-old', 'app: on → off', 'shop: writeKeys'],
  })
})

test('no value of a field is named', () => {
  expect(JSON.stringify(changes(after))).not.toMatch(/secret\b|second|two/)
})

test('a catalog in which nothing differs has no changes', () => {
  expect(changes(before)).toEqual({})
})

test('only so many changes are named, and the removed come first', () => {
  expect(changes(after, 2)).toEqual({
    destinations: ['-customer-9', 'customer-3: on → paused', 'and 2 more'],
    sources: ['-old', 'app: on → off', 'and 1 more'],
  })
})

test('with the outline of an earlier catalog alone, entries and their states are compared', () => {
  expect(
    changesBetween({ outline: outlineOf(before) }, { outline: outlineOf(after), catalog: after }),
  ).toEqual({
    destinations: ['-customer-9', 'customer-3: on → paused', '+customer-new'],
    sources: ['-old', 'app: on → off'],
  })
})
