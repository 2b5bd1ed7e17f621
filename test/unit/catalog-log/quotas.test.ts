import { expect, test } from 'vitest'
import { readQuota } from '../../../src/catalog/labels.ts'
import { Definitions } from '../../../src/catalog-log/definitions.ts'
import { type Edit, judge } from '../../../src/catalog-log/judge.ts'
import type { StoredObject } from '../../../src/catalog-log/log.ts'
import { keyOf } from '../../../src/catalog-log/names.ts'
import { catalogKeys } from '../../support/catalog-log.ts'

const definitions = new Definitions('test', catalogKeys())
const options = { definitions, variables: {}, allowAddresses: [], atMs: 1_000 }
const quotas = [{ label: 'tenant', most: 2 }]

function put(id: string, labels?: object): Edit {
  const given = { id, labels, sources: ['shop'], hooks: [{ url: 'https://example.com/' }] }
  return { name: { kind: 'destination', id }, op: 'put', given }
}

/** Returns the objects that edits make of others. */
function after(
  edits: readonly Edit[],
  before = new Map<string, StoredObject>(),
): ReadonlyMap<string, StoredObject> {
  const judged = judge(edits, before, options)
  if (!judged.ok) throw new Error(judged.kind)
  const made = judged.accepted.map(({ name, definition = {} }, version): [string, StoredObject] => [
    keyOf(name),
    { ...name, version, revision: 1, definition },
  ])
  return new Map([...before, ...made])
}

const acme = { tenant: 'acme' }
const source: Edit = { name: { kind: 'source', id: 'shop' }, op: 'put', given: { id: 'shop', labels: acme } }
const two = after([source, put('a', acme), put('b', acme), put('c', { tenant: 'globex' }), put('d')])

test('a destination that is one too many with a label is refused, alone or among others', () => {
  const judged = judge([put('e', acme)], two, { ...options, quotas })
  expect(judged).toMatchObject({ ok: false, faults: [{ file: 'destination/e', path: 'labels.tenant' }] })
  expect(JSON.stringify(judged)).toContain('3 destinations with tenant=acme, and 2 may have it')
  expect(judge([put('d', acme)], two, { ...options, quotas })).toMatchObject({ ok: false })
  const many = [put('e', { tenant: 'globex' }), put('f', { tenant: 'globex' })]
  expect(judge(many, two, { ...options, quotas })).toMatchObject({
    faults: [{ file: 'destination/e' }, { file: 'destination/f' }],
  })
})

test('others are not refused: not what has the label already, not other labels, not what makes room', () => {
  for (const edits of [
    [put('a', { ...acme, team: 'x' })],
    [put('e'), put('f', { tenant: 'new' })],
    [put('e', { tenant: 'globex' })],
    [put('a', { tenant: 'globex' }), put('e', acme)],
    [{ name: { kind: 'destination', id: 'a' }, op: 'remove' } as const, put('e', acme)],
  ])
    expect(judge(edits, two, { ...options, quotas })).toMatchObject({ ok: true })
  // The quota was lowered meanwhile.
  const lowered = [{ label: 'tenant', most: 1 }]
  expect(judge([put('a', { ...acme, team: 'x' })], two, { ...options, quotas: lowered })).toMatchObject({
    ok: true,
  })
})

test('what is written together counts together', () => {
  const coming = new Map([['destination/e', { id: 'e', labels: { tenant: 'globex' } }]])
  expect(judge([put('f', { tenant: 'globex' })], two, { ...options, quotas, coming })).toMatchObject({
    ok: false,
  })
  const leaving = new Map([['destination/a', undefined]])
  expect(judge([put('f', acme)], two, { ...options, quotas, coming: leaving })).toMatchObject({ ok: true })
})

test.each(['tenant', 'tenant:', 'tenant:0', 'tenant:-1', ':5', 'tenant:1.5', 'Tenant:5', 'a:1:2'])(
  '%j is no quota',
  (text) => {
    expect(readQuota(text)).toBeUndefined()
  },
)

test('a quota names a label and a count', () => {
  expect(readQuota('tenant:100')).toEqual({ label: 'tenant', most: 100 })
})
