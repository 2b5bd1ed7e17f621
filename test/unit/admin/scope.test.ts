import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { isOpenToScopes } from '../../../src/admin/admin-route.ts'
import {
  covers,
  everything,
  holdsDestination,
  holdsSource,
  idPrefixOf,
  narrowed,
  readScope,
  scopeData,
  sees,
  type TokenScope,
} from '../../../src/admin/scope.ts'

const keys = ['tenant', 'team', '__proto__', 'constructor']
const values = ['acme', 'globex', 'acme=globex']
const ids = ['acme.crm', 'acme.erp', 'globex.crm', '__proto__']

const scope: fc.Arbitrary<TokenScope> = fc.record(
  {
    label: fc.record({ key: fc.constantFrom(...keys), value: fc.constantFrom(...values) }),
    destinations: fc.subarray(ids).map((some) => new Set(some)),
  },
  { requiredKeys: [] },
)
const destination = fc.record({
  id: fc.constantFrom(...ids),
  labels: fc
    .array(fc.tuple(fc.constantFrom(...keys), fc.constantFrom(...values)), { maxLength: 2 })
    .map((pairs) => Object.fromEntries(pairs)),
})

test('a scope that covers another holds all that the other holds', () => {
  fc.assert(
    fc.property(scope, scope, destination, (own, other, one) => {
      fc.pre(covers(own, other))
      expect(holdsDestination(own, one) || !holdsDestination(other, one)).toBe(true)
      expect(holdsSource(own, one) || !holdsSource(other, one)).toBe(true)
    }),
  )
})

test('what somebody gives on holds no more than his own, whatever he asks for', () => {
  fc.assert(
    fc.property(scope, scope, destination, (own, asked, one) => {
      const given = narrowed(own, asked)
      fc.pre(given !== undefined)
      expect(covers(own, given)).toBe(true)
      const isHeld = holdsDestination(own, one) && holdsDestination(asked, one)
      expect(isHeld || !holdsDestination(given, one)).toBe(true)
    }),
  )
})

test('a scope holds what meets each of its parts, and nothing that is inherited from an object', () => {
  const label = { key: 'tenant', value: 'acme' }
  const both = { label, destinations: new Set(['acme.crm']) }
  expect(holdsDestination(both, { id: 'acme.crm', labels: { tenant: 'acme' } })).toBe(true)
  expect(holdsDestination(both, { id: 'acme.erp', labels: { tenant: 'acme' } })).toBe(false)
  expect(holdsDestination(both, { id: 'acme.crm', labels: { tenant: 'globex' } })).toBe(false)
  expect(holdsDestination({ label }, { id: 'acme.crm' })).toBe(false)
  expect(holdsDestination({ label: { key: 'constructor', value: 'x' } }, { id: 'a', labels: {} })).toBe(false)
  expect(holdsSource({ destinations: new Set(['shop']) }, { labels: {} })).toBe(false)
  const catalog = { destinations: new Map([['crm', { id: 'crm' }]]) }
  expect([sees(everything, catalog, undefined), sees(everything, catalog, 'gone')]).toEqual([true, true])
  const list = { destinations: new Set(['crm', 'gone']) }
  expect(['crm', 'gone', undefined].map((id) => sees(list, catalog, id))).toEqual([true, false, false])
})

test('ids of new destinations are free without a scope, begin with the label, and are none for a list', () => {
  expect(idPrefixOf(everything)).toBe('')
  expect(idPrefixOf({ label: { key: 'tenant', value: 'acme' } })).toBe('acme.')
  expect(idPrefixOf({ destinations: new Set(['crm']) })).toBeUndefined()
})

test('a scope is read as it was written, and not at all if a part of it is not known', () => {
  for (const one of [
    everything,
    { label: { key: 'tenant', value: 'acme' } },
    { destinations: new Set(['crm', 'erp']) },
    { label: { key: 'tenant', value: 'acme' }, destinations: new Set(['crm']) },
  ])
    expect(readScope(scopeData(one))).toEqual(one)
  for (const unknown of [
    undefined,
    null,
    'every',
    {},
    { labels: 'tenant=acme' },
    { label: 'tenant' },
    { label: ['tenant=acme'] },
    { label: 'tenant=acme', sources: ['shop'] },
    { destinations: 'crm' },
    { destinations: ['crm', 7] },
  ])
    expect([unknown, readScope(unknown)]).toEqual([unknown, undefined])
})

test('a route that declares no scope is closed to tokens with a scope', () => {
  expect([{}, { scope: 'installation' } as const].map(isOpenToScopes)).toEqual([false, false])
  expect(isOpenToScopes({ scope: 'within' })).toBe(true)
})
