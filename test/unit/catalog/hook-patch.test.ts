import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mergedDefinition, removedFields, silentHooks } from '../../../src/catalog/hook-patch.ts'

const main = {
  id: 'main',
  url: 'https://a.example.com/hook',
  headers: { 'X-Team': 'crm', Authorization: 'secret' },
  login: { kind: 'basic', username: 'sluice', password: 'secret' },
}
const other = { url: 'https://b.example.com/hook', tls: { certificate: 'c', key: 'k', ca: 'ca' } }
const crm = { id: 'crm', rateLimit: { perSecond: 5, burst: 9 }, hooks: [main, other] }

describe('a patch', () => {
  test.for([
    ['its id and a new URL', { id: 'main', url: 'https://a.example.com/v2' }, ['headers', 'login']],
    ['the same URL, and no id', { url: main.url, login: null }, ['id', 'headers']],
    [
      'another id and URL',
      { id: 'new', url: 'https://c.example.com/', headers: {} },
      ['headers.X-Team', 'headers.Authorization', 'login'],
    ],
    ['a part of its headers', { ...main, headers: { 'x-team': 'erp' } }, ['headers.Authorization']],
    ['no headers', { ...main, headers: null, login: null }, []],
    ['a new login', { ...main, login: { kind: 'basic', username: 'other' } }, []],
    ['all of it', main, []],
  ] as const)('with %s says nothing of the fields that it lacks', ([, hook, fields]) => {
    const silent = silentHooks(crm, { hooks: [hook] })
    expect(silent).toEqual(fields.length === 0 ? [] : [{ index: 0, former: 'main', fields }])
  })

  test('may reorder, remove and add hooks', () => {
    expect(silentHooks(crm, { hooks: [other, main] })).toEqual([])
    expect(silentHooks(crm, { hooks: [main] })).toEqual([])
    expect(silentHooks(crm, { hooks: [main, other, { url: 'https://c.example.com/' }] })).toEqual([])
    expect(silentHooks(crm, { rateLimit: null })).toEqual([])
    const moved = { ...other, url: 'https://c.example.com/', tls: { ca: 'ca' } }
    expect(silentHooks(crm, { hooks: [main, moved] })).toMatchObject([
      { index: 1, fields: ['tls.certificate', 'tls.key'] },
    ])
  })

  test('takes out of a hook what is null, and replaces lists as a whole', () => {
    const hooks = [{ ...main, login: null, headers: { 'X-Team': 'erp', Authorization: null } }]
    const { login, ...left } = main
    expect(login.kind).toBe('basic')
    expect(mergedDefinition(crm, { rateLimit: { burst: null }, hooks })).toEqual({
      id: 'crm',
      rateLimit: { perSecond: 5 },
      hooks: [{ ...left, headers: { 'X-Team': 'erp' } }],
    })
    expect(mergedDefinition(crm, { hooks: null })).not.toHaveProperty('hooks')
  })

  test('without hooks is applied as RFC 7396 says: twice is the same as once', () => {
    const object = fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 3 }))
    fc.assert(
      fc.property(object, object, (before, patch) => {
        const once = mergedDefinition(before, patch)
        expect(mergedDefinition(once, patch)).toEqual(once)
      }),
    )
  })
})

describe('what a change removes', () => {
  test('is told by fields, with the positions before', () => {
    const after = {
      id: 'crm',
      rateLimit: { perSecond: 5 },
      hooks: [{ ...main, url: 'https://a.example.com/v2', headers: { 'x-team': 'crm' }, login: undefined }],
    }
    expect(removedFields(crm, JSON.parse(JSON.stringify(after)))).toEqual([
      'rateLimit.burst',
      'hooks[0].headers.Authorization',
      'hooks[0].login',
      'hooks[1]',
    ])
  })

  test('is nothing if nothing is removed', () => {
    expect(removedFields(crm, { ...crm, state: 'paused', hooks: [other, main] })).toEqual([])
    expect(removedFields({ id: 'shop' }, { id: 'shop', name: 'Shop' })).toEqual([])
  })
})
