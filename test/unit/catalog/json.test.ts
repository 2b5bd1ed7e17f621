import * as fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { formatFault } from '../../../src/catalog/fault.ts'
import { readJson } from '../../../src/catalog/json.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'
import { readYaml } from '../../../src/catalog/yaml.ts'

const catalog = {
  sources: [{ id: 'shop' }],
  destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: 'https://example.com/hook' }] }],
}

/** Returns a text with more characters than YAML may have, so that it can only be read as JSON. */
function long(text: string): string {
  return text + '\n'.repeat(16 * 1024 * 1024)
}

function faults(text: string): readonly string[] {
  const parsed = parseCatalog(text, { file: 'catalog.json' })
  return parsed.ok ? [] : parsed.faults.map(formatFault)
}

describe('a JSON text', () => {
  it('is read as the same data as by YAML', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), fc.nat(2), (data, indent) => {
        const text = JSON.stringify({ data }, undefined, indent)
        const value: unknown = JSON.parse(text)
        expect(readJson(text)).toEqual({ ok: true, value })
        expect(readYaml(text)).toMatchObject({ ok: true, value })
      }),
    )
  })

  it.each([
    [
      'a key twice',
      '{"a": 1,\n "b": {"a": 1, "\\u0061": 2}}',
      ':2:16: b.a: is a key that was written before',
    ],
    ['a missing value', '{"a": 1,\n "b": secret}', ':2:7: b: is not valid JSON here'],
    ['an early end', '{"a": 1,\n "b": [1', 'is not valid JSON here'],
    ['a comma too many', '{"a": 1,\n}', ':2:1: is not valid JSON here'],
    ['a comment', '{"a": 1,\n // secret\n "b": 2}', ':2:2: is not valid JSON here'],
    ['a control character', '{"a": "secret\u0001"}', 'is not valid JSON here'],
    ['text after it', '{"a": 1} secret', ':1:10: is not valid JSON here'],
    ['a hundred thousand brackets', `{"a": ${'['.repeat(100_000)}`, 'is nested too deep'],
  ])('with %s gets a fault that does not quote it', (_name, text, expected) => {
    const read = readJson(text)
    const found = read.ok ? [] : read.faults.map((fault) => formatFault({ file: 'f', path: '', ...fault }))
    expect(found).toEqual([expect.stringContaining(expected)])
    expect(found.join('')).not.toContain('secret')
  })

  it('of more than 16 MiB is a catalog', () => {
    const parsed = parseCatalog(long(JSON.stringify(catalog)), { file: 'catalog.json' })
    expect(parsed.ok && parsed.catalog.destinations.get('crm')?.hooks[0]?.url).toBe(
      'https://example.com/hook',
    )
  })

  it('that is long has faults with their paths', () => {
    const text = long(JSON.stringify({ ...catalog, sources: [{ id: 'shop', kind: 'other' }] }))
    expect(faults(text)).toEqual([
      expect.stringContaining('catalog.json: shop: sources[0].kind: is not a value'),
    ])
    expect(faults(long('{"sources": [],\n "sources": []}'))).toEqual([
      'catalog.json:2:2: sources: is a key that was written before; keep one of the two',
    ])
  })

  it('that is short has faults with their places', () => {
    const text = JSON.stringify({ ...catalog, sources: [{ id: 'shop', kind: 'other' }] }, undefined, 1)
    expect(faults(text)).toEqual([expect.stringContaining('catalog.json:5:12: shop: sources[0].kind')])
  })
})

test('a faulty entry of a JSON file of one line is told by its path and its id', () => {
  const many = Array.from({ length: 50 }, (_, at) => ({ ...catalog.destinations[0], id: `crm-${at}` }))
  const text = JSON.stringify({ ...catalog, destinations: many })
  const cut = text.replace('"id":"crm-42","', '"id":"crm-42",""')
  expect(cut).not.toBe(text)
  expect(faults(cut)).toEqual([
    expect.stringMatching(/^catalog\.json:1:\d+: crm-42: destinations\[42\].*: is not valid JSON here/),
  ])
  const odd = text.replace('"id":"crm-42"', '"id":"crm-42","sorces":[]')
  expect(faults(odd)).toEqual([
    expect.stringMatching(
      /^catalog\.json:1:\d+: crm-42: destinations\[42\]\.sorces: is not a known key; did you mean sources\?/,
    ),
  ])
})

test('an id that is none is not told: it may be a secret', () => {
  const [one] = catalog.destinations
  const found = faults(
    JSON.stringify({ ...catalog, destinations: [{ ...one, id: 'my secret', state: 'of' }] }),
  )
  expect(found).toHaveLength(2)
  expect(found.join('')).not.toContain('secret')
})

test.each([
  ['a comma too many', (text: string) => text.replace(/\}$/, ',}')],
  ['a comment', (text: string) => text.replace(/\}$/, ' # a comment\n}')],
])('a long text in braces that is YAML and no JSON is read as YAML: %s', (_name, change) => {
  const names = Array.from({ length: 9_000 }, (_, index) => ({ id: `shop-${index}`, name: 'x'.repeat(100) }))
  const text = change(JSON.stringify({ ...catalog, sources: [...catalog.sources, ...names] }))
  expect(text.length).toBeGreaterThan(1024 * 1024)
  const parsed = parseCatalog(text, { file: 'catalog.yaml' })
  expect(parsed.ok && parsed.catalog.sources.size).toBe(9_001)
})

test.each([
  ['a missing key', { sources: ['none'] }],
  ['an unknown key', { sources: [], hooks: [{ url: 'https://example.com/' }], unknown: 1 }],
])('a catalog with a fault in each destination lists a thousand of them: %s', (_name, fault) => {
  const destinations = Array.from({ length: 5_000 }, (_, index) => ({ id: `d${index}`, ...fault }))
  const parsed = parseCatalog(JSON.stringify({ sources: [], destinations }), { file: 'catalog.json' })
  const listed = parsed.ok ? [] : parsed.faults.map(formatFault)
  expect(listed).toHaveLength(1_001)
  expect(listed.at(-1)).toBe('catalog.json: has more faults than are listed; repair these first')
})

test('a YAML mapping in braces is read as YAML', () => {
  const parsed = parseCatalog('{ sources: [{ id: shop }], destinations: [] }', { file: 'catalog.yaml' })
  expect(parsed.ok && [...parsed.catalog.sources.keys()]).toEqual(['shop'])
})

test('a YAML text of more than 16 MiB is refused with advice', () => {
  expect(faults(long('sources: []\ndestinations: []\n'))).toEqual([
    'catalog.json: is a YAML text of more than 16 Mi characters; write it as JSON that begins with {, which Sluice reads up to 64 MiB',
  ])
})

test('a name with an escape is not read as one of an earlier text', () => {
  readJson('{"catalog":{"first":1,"\\\\":2}}')
  expect(readJson('{"catalog":{"first":1,"\\n":2}}')).toEqual({
    ok: true,
    value: { catalog: { first: 1, '\n': 2 } },
  })
})
