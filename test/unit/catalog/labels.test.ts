import { expect, test } from 'vitest'
import { isSelected, readSelector } from '../../../src/catalog/labels.ts'
import { parseCatalogData } from '../../../src/catalog/parse.ts'

function parse(labels: unknown) {
  const destination = { id: 'crm', sources: [], hooks: [{ url: 'https://crm.example.com/' }], labels }
  const data = { sources: [{ id: 'shop', labels }], destinations: [destination] }
  return parseCatalogData(data, { file: 'catalog', version: '' })
}

test('destinations and sources keep their labels', () => {
  const labels = { tenant: 'acme', 'team.name': 'Growth EU/2' }
  const parsed = parse(labels)
  expect(parsed.ok && parsed.catalog.destinations.get('crm')?.labels).toEqual(labels)
  expect(parsed.ok && parsed.catalog.sources.get('shop')?.labels).toEqual(labels)
})

test.each([
  [{ Tenant: 'acme' }, 'labels.Tenant', 'is not the name of a label', 'begins with a letter'],
  [{ tenant: '' }, 'labels.tenant', 'is not written as it has to be', '1 to 100 of the characters'],
  [{ tenant: '${CATALOG_X}' }, 'labels.tenant', 'is not written as it has to be', '1 to 100 of'],
  [{ tenant: 5 }, 'labels.tenant', 'must be text, and is a whole number', 'quotes'],
  [['acme'], 'labels', 'must be a block of keys, and is a list', 'below it'],
  [
    Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`k${index}`, 'v'])),
    'labels',
    'has too many',
    '20',
  ],
])('labels %j are refused with what to write', (labels, path, problem, advice) => {
  const parsed = parse(labels)
  const faults = parsed.ok ? [] : parsed.faults
  expect(faults.map((fault) => fault.path)).toEqual([`sources[0].${path}`, `destinations[0].${path}`])
  expect(faults[0]?.problem).toContain(problem)
  expect(faults[0]?.advice).toContain(advice)
})

test('a selector names a label and its value', () => {
  expect(readSelector('tenant=acme')).toEqual({ key: 'tenant', value: 'acme' })
  expect(readSelector('tenant=a b/c:d')).toEqual({ key: 'tenant', value: 'a b/c:d' })
  for (const text of ['tenant', 'tenant=', '=acme', 'Tenant=acme', 'tenant=acme\n', ''])
    expect(readSelector(text)).toBeUndefined()
  expect(isSelected({ tenant: 'acme' }, { key: 'tenant', value: 'acme' })).toBe(true)
  expect(isSelected({ tenant: 'acme' }, { key: 'tenant', value: 'acm' })).toBe(false)
  expect(isSelected({}, { key: 'constructor', value: 'x' })).toBe(false)
  expect(isSelected(undefined, { key: 'tenant', value: 'acme' })).toBe(false)
})
