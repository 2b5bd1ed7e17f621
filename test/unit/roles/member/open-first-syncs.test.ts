import { expect, test } from 'vitest'
import type { Catalog, Destination } from '../../../../src/catalog/catalog.ts'
import { nextCatalog, withVersions } from '../../../../src/catalog/next-catalog.ts'
import { parseCatalog } from '../../../../src/catalog/parse.ts'
import { mayConcernSpaces } from '../../../../src/roles/member/open-first-syncs.ts'

function catalogOf(...destinations: readonly string[]): Catalog {
  const text = [
    'sources: [{ id: shop }, { id: members, kind: audiences }]',
    'destinations:',
    ...destinations.map((sources, index) => `  - { id: d${index}, ${sources}, hooks: [{ url: ${hook} }] }`),
  ].join('\n')
  const parsed = parseCatalog(text, { file: 'catalog.yaml' })
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults))
  return withVersions(parsed.catalog)
}

const hook = 'https://example.com/hook'
const before = catalogOf('sources: [shop]', 'sources: [members]')

function changedTo(change: Readonly<Record<string, Destination | undefined>>): Catalog {
  const patch = { sources: new Map(), destinations: new Map(Object.entries(change)) }
  return nextCatalog(before, patch, 'next')
}

test('connections between destinations and spaces are reviewed only if a change may concern them', () => {
  const [plain, ofSpace] = [before.destinations.get('d0'), before.destinations.get('d1')]
  if (plain === undefined || ofSpace === undefined) throw new Error('it is not there')
  expect(mayConcernSpaces(before, changedTo({ d0: { ...plain, state: 'paused' } }))).toBe(false)
  expect(mayConcernSpaces(before, changedTo({ d0: undefined }))).toBe(false)
  expect(mayConcernSpaces(before, changedTo({ d0: { ...plain, sources: ['members'] } }))).toBe(true)
  expect(mayConcernSpaces(before, changedTo({ d1: { ...ofSpace, state: 'paused' } }))).toBe(true)
  expect(mayConcernSpaces(before, changedTo({ d1: undefined }))).toBe(true)
  const members = before.sources.get('members')
  if (members === undefined) throw new Error('it is not there')
  const off = new Map([['members', { ...members, enabled: false }]])
  expect(mayConcernSpaces(before, nextCatalog(before, { sources: off, destinations: new Map() }, 'v'))).toBe(
    true,
  )
  // A catalog that was read anew may differ in everything.
  expect(mayConcernSpaces(before, catalogOf('sources: [shop]', 'sources: [members]'))).toBe(true)
})
