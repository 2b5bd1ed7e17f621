import { describe, expect, test } from 'vitest'
import { newSigningKey } from '../../../src/catalog/features/signing-keys.ts'
import { listOf, recordOf } from '../../../src/catalog/plain-data.ts'
import { type Definition, Definitions } from '../../../src/catalog-log/definitions.ts'
import { createAuthority } from '../../support/certificates.ts'
import { catalogKeys } from '../../support/catalog-log.ts'

// Logins and certificates in the topic of the catalog: sealed, never shown, and bound to the host to which
// they are sent.

const name = { kind: 'destination', id: 'crm' } as const
const definitions = new Definitions('test', catalogKeys())
const fillIn = definitions.fill.bind(definitions)
const authority = createAuthority('An authority of bound secrets')
const { cert, key } = authority.issue({ names: ['sluice'] })
const password = 'a password that nobody sees'

const login = { kind: 'basic', username: 'a user that nobody sees', password }
const plain = {
  id: 'crm',
  sources: ['shop'],
  hooks: [
    {
      url: 'https://crm.example/hook',
      id: 'main',
      login,
      tls: { certificate: cert, key, ca: authority.cert },
    },
  ],
}
const stored = definitions.stored(name, plain, { earlier: undefined, atMs: 1 })
const shown = definitions.shown(name, stored, { showsUrls: true })

/** Fills in what is kept of the stored definition, after `edit` has changed what people see of its hook. */
function filled(edit: (hook: Definition) => Definition) {
  const [hook] = Array.isArray(shown['hooks']) ? shown['hooks'] : []
  const given = { ...shown, hooks: [edit(recordOf(hook))] }
  return fillIn(name, given, { earlier: stored, variables: {} })
}

test('no text of a login or of a certificate is stored or shown', () => {
  for (const form of [stored, shown]) {
    const text = JSON.stringify(form)
    for (const secret of [password, login.username, 'BEGIN CERTIFICATE', 'PRIVATE KEY'])
      expect(text).not.toContain(secret)
  }
  expect(definitions.plain(name, stored)).toEqual(plain)
})

test('what is written back as it is shown is kept, with its time and its bytes', () => {
  const { plain: again, faults } = filled((hook) => hook)
  expect(faults).toEqual([])
  expect(definitions.stored(name, again, { earlier: stored, atMs: 2 })).toEqual(stored)
})

describe('a secret that was set for one host', () => {
  test('is kept when the path changes', () => {
    expect(filled((hook) => ({ ...hook, url: 'https://crm.example/other' })).faults).toEqual([])
  })

  test.each(['https://evil.example/hook', 'https://crm.example:8443/hook', 'http://crm.example/hook'])(
    'is refused to %s, and so is each other one',
    (url) => {
      const { faults } = filled((hook) => ({ ...hook, url }))
      expect(faults.map(({ path, problem }) => `${path} ${problem}`)).toEqual(
        ['login.username', 'login.password', 'tls.certificate', 'tls.key', 'tls.ca'].map(
          (path) => `hooks[0].${path} keeps a value that was set for another field or host`,
        ),
      )
    },
  )

  test('is refused in another field', () => {
    const { faults } = filled((hook) => {
      const { password: kept } = recordOf(hook['login'])
      return { ...hook, headers: { 'X-Copy': kept } }
    })
    expect(faults.map(({ path }) => path)).toEqual(['hooks[0].headers.X-Copy'])
  })
})

describe('the secret of a client of OAuth 2', () => {
  const oauth = {
    kind: 'oauth2',
    tokenUrl: 'https://login.example/token',
    clientId: 'sluice',
    clientSecret: 'a client secret that nobody sees',
  }
  const withLogin = { ...plain, hooks: [{ url: 'https://crm.example/hook', login: oauth }] }
  const sealed = definitions.stored(name, withLogin, { earlier: undefined, atMs: 1 })
  const seen = definitions.shown(name, sealed, { showsUrls: true })
  const [hook = {}] = (Array.isArray(seen['hooks']) ? seen['hooks'] : []).map(recordOf)
  const shownLogin = recordOf(hook['login'])

  function faultsOf(edited: Definition): readonly string[] {
    const given = { ...seen, hooks: [{ ...hook, ...edited }] }
    const { faults, plain: again } = fillIn(name, given, { earlier: sealed, variables: {} })
    if (faults.length === 0)
      expect(
        recordOf(recordOf(Array.isArray(again['hooks']) ? again['hooks'][0] : {})['login'])['clientSecret'],
      ).toBe(oauth.clientSecret)
    return faults.map(({ path }) => path)
  }

  test('is sealed, and the token endpoint is shown', () => {
    expect(JSON.stringify([sealed, seen])).not.toContain(oauth.clientSecret)
    expect(shownLogin).toMatchObject({ tokenUrl: oauth.tokenUrl, clientId: 'sluice' })
    expect(definitions.plain(name, sealed)).toEqual(withLogin)
  })

  test.each<[string, Definition, boolean]>([
    ['nothing changes', {}, true],
    ['the scope changes', { login: { ...shownLogin, scope: 'other' } }, true],
    [
      'the path of the token endpoint changes',
      { login: { ...shownLogin, tokenUrl: 'https://login.example/v2' } },
      true,
    ],
    [
      'the token endpoint moves to another host',
      { login: { ...shownLogin, tokenUrl: 'https://evil.example/token' } },
      false,
    ],
    [
      'the token endpoint loses its TLS',
      { login: { ...shownLogin, tokenUrl: 'http://login.example/token' } },
      false,
    ],
    ['the URL moves to another host', { url: 'https://evil.example/hook' }, false],
    [
      'it becomes a password',
      { login: { kind: 'basic', username: 'u', password: shownLogin['clientSecret'] } },
      false,
    ],
  ])('is kept only where it was set for: %s', (_, edited, isKept) => {
    expect(faultsOf(edited).length === 0).toBe(isKept)
  })
})

test('keys of Ed25519 are sealed, and kept when a key is added or ended', () => {
  const [one, two] = [newSigningKey(), newSigningKey()]
  const signed = { ...plain, signing: { standardWebhooks: false, ed25519: [one] } }
  const sealed = definitions.stored(name, signed, { earlier: undefined, atMs: 1 })
  const seen = definitions.shown(name, sealed, { showsUrls: true })
  expect(JSON.stringify([sealed, seen])).not.toContain('whsk_')
  const given = { ...seen, signing: { ...recordOf(seen['signing']), ed25519: [...keysOf(seen), two] } }
  const added = fillIn(name, given, { earlier: sealed, variables: {} })
  expect(added.faults).toEqual([])
  expect(keysOf(added.plain)).toEqual([one, two])
  const both = definitions.stored(name, added.plain, { earlier: sealed, atMs: 2 })
  expect(keysOf(both)[0]).toBe(keysOf(sealed)[0])
})

function keysOf(definition: Definition): readonly unknown[] {
  return listOf(recordOf(definition['signing'])['ed25519'])
}
