import { describe, expect, test } from 'vitest'
import { PeopleBook, personOf, storedPerson } from '../../../../src/admin/provider/people.ts'
import { readProviderRight } from '../../../../src/admin/provider/provider-rights.ts'

const rightsOf = (...texts: string[]) =>
  texts.map((text) => readProviderRight(text)).filter((one) => one !== undefined)
const ann = { issuer: 'https://id.example', subject: 'ann', name: 'ann@example.com' }

describe('a right by a value of a claim', () => {
  test.each([
    ['ops: admin', { value: 'ops', right: 'admin', seesContent: true, scope: {} }],
    ['my team: read', { value: 'my team', right: 'read', seesContent: false, scope: {} }],
    ['a: b: read content', { value: 'a: b', right: 'read', seesContent: true }],
    [
      's: operate no-content tenant=acme',
      { seesContent: false, scope: { label: { key: 'tenant', value: 'acme' } } },
    ],
    [
      's: operate tenant=acme content',
      { seesContent: true, scope: { label: { key: 'tenant', value: 'acme' } } },
    ],
  ])('%s', (text, expected) => {
    expect(readProviderRight(text)).toMatchObject(expected)
  })

  test.each([
    'ops',
    'ops: owner',
    ': read',
    'ops: read tenant',
    'a: read content content',
    'a: read x=y z=w',
  ])('%s is none', (text) => {
    expect(readProviderRight(text)).toBeUndefined()
  })
})

describe('people', () => {
  const rights = rightsOf('ops: admin', 'support: read')
  const person = personOf(ann, ['support'])
  const kept = new Map([[person.id, storedPerson(person)]])

  test('have what the settings of now give for what the provider said', () => {
    expect(new PeopleBook(() => kept, rights).withHash(person.hash)).toMatchObject({
      name: 'oidc:ann@example.com',
      right: 'read',
    })
    for (const fewer of [[], rightsOf('ops: admin')])
      expect(new PeopleBook(() => kept, fewer).withHash(person.hash)).toBeUndefined()
  })

  test('are the same with the same subject of the same issuer, and others otherwise', () => {
    expect(personOf({ ...ann, name: 'other' }, [])).toMatchObject({ id: person.id, hash: person.hash })
    for (const other of [
      { ...ann, subject: 'bob' },
      { ...ann, issuer: 'https://other.example' },
    ])
      expect(personOf(other, []).hash).not.toBe(person.hash)
  })

  test('of which this version does not know all have no right', () => {
    const later = new Map([[person.id, { ...storedPerson(person), onlyOn: 'mondays' }]])
    expect(new PeopleBook(() => later, rights).withHash(person.hash)).toBeUndefined()
  })

  test('without a value in the settings have none', () => {
    const book = new PeopleBook(() => new Map(), rights)
    expect(book.valuesIn(['staff'])).toEqual([])
    expect(book.tokenOf(personOf(ann, []))).toBeUndefined()
  })
})
