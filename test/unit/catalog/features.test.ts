import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { changesBetween } from '../../../src/catalog/changes.ts'
import { certificateEndMs, unknownPem } from '../../../src/catalog/features/hook-tls.ts'
import { basicAuthorization } from '../../../src/catalog/features/hook-login.ts'
import { newSigningKey } from '../../../src/catalog/features/signing-keys.ts'
import { outlineOf } from '../../../src/catalog/outline.ts'
import { parseCatalogData, type ParsedCatalog } from '../../../src/catalog/parse.ts'
import { createAuthority, dayMs } from '../../support/certificates.ts'

// The fields of `src/catalog/features`: what a catalog with them becomes, and which faults they may have.

const authority = createAuthority('An authority of features')
const identity = authority.issue({ names: ['sluice'] })
const other = authority.issue({ names: ['sluice'] })
const encrypted = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'p' },
}).privateKey
const shortKey = generateKeyPairSync('rsa', { modulusLength: 512 })

type Given = { hook?: object; destination?: object; variables?: Record<string, string> }

function parse({ hook = {}, destination = {}, variables = {} }: Given): ParsedCatalog {
  const hooks = [{ url: 'https://crm.example/hook', ...hook }]
  const catalog = {
    sources: [{ id: 'shop' }],
    destinations: [{ id: 'crm', sources: ['shop'], hooks, ...destination }],
  }
  return parseCatalogData(catalog, { file: 'catalog.yaml', version: '1', variables })
}

function parsed(given: Given) {
  const result = parse(given)
  if (!result.ok) throw new Error(result.faults.map(({ path, problem }) => `${path} ${problem}`).join('\n'))
  const destination = result.catalog.destinations.get('crm')
  if (destination === undefined) throw new Error('there is no destination')
  return { catalog: result.catalog, destination, hook: destination.hooks[0] }
}

function faultsOf(given: Given): readonly string[] {
  const result = parse(given)
  return result.ok
    ? []
    : result.faults.map(({ path, problem }) => `${path.replace(/^.*?\]\.?(hooks\[0\]\.?)?/, '')} ${problem}`)
}

test('a hook may have a login, certificates and authorities, in variables too', () => {
  const { key, cert } = identity
  const { hook, destination } = parsed({
    hook: {
      login: { kind: 'basic', username: 'sluice', password: '${CATALOG_P}' },
      tls: { certificate: '${CATALOG_C}', key: '${CATALOG_K}', ca: authority.cert },
    },
    destination: { timeout: '1500ms' },
    variables: { CATALOG_P: 'pä:ss', CATALOG_C: cert, CATALOG_K: key },
  })
  expect(hook?.login).toEqual({ kind: 'basic', username: 'sluice', password: 'pä:ss' })
  expect(hook?.tls).toEqual({ certificate: cert, key, ca: authority.cert })
  expect(destination.timeoutMs).toBe(1_500)
})

test('a hook without them has no field of them', () => {
  const { hook, destination } = parsed({})
  expect(Object.keys(hook ?? {})).toEqual(['id', 'url', 'origin', 'path', 'headers'])
  expect(Object.keys(destination)).not.toContain('timeoutMs')
})

test('a login of the kind basic is a header of RFC 7617, in UTF-8', () => {
  const login = { kind: 'basic', username: 'Aladdin', password: 'open sesame' } as const
  expect(basicAuthorization(login)).toBe('Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==')
  const given = basicAuthorization({ kind: 'basic', username: 'test', password: '123£' })
  expect(given).toBe('Basic dGVzdDoxMjPCow==')
})

test('the end of a client certificate is known', () => {
  const { cert: certificate, key } = authority.issue({ names: ['sluice'], untilMs: 10 * dayMs })
  const endMs = certificateEndMs({ certificate, key }) ?? 0
  expect(Math.abs(endMs - Date.now() - 10 * dayMs)).toBeLessThan(60_000)
  expect(certificateEndMs({ ca: authority.cert })).toBeUndefined()
})

const oauth = {
  kind: 'oauth2',
  tokenUrl: 'https://login.example/oauth2/token?tenant=1',
  clientId: 'sluice',
  clientSecret: '${CATALOG_S}',
}

test('a login of the kind oauth2 has a token endpoint, and what it asks for', () => {
  const variables = { CATALOG_S: 'a client secret' }
  const { hook } = parsed({
    hook: { login: { ...oauth, scope: 'a b', audience: 'crm', clientAuth: 'post' } },
    variables,
  })
  expect(hook?.login).toEqual({
    kind: 'oauth2',
    tokenOrigin: 'https://login.example',
    tokenPath: '/oauth2/token?tenant=1',
    clientId: 'sluice',
    clientSecret: 'a client secret',
    scope: 'a b',
    audience: 'crm',
    clientAuth: 'post',
  })
  const { hook: short } = parsed({ hook: { login: oauth }, variables })
  expect(Object.keys(short?.login ?? {})).not.toContain('scope')
})

test('the token endpoint must be at an address that is allowed, as the URL itself', () => {
  const hooks = [
    {
      url: 'https://crm.example/',
      login: { ...oauth, clientSecret: 's', tokenUrl: 'http://10.0.0.1/token' },
    },
  ]
  const catalog = { sources: [{ id: 'shop' }], destinations: [{ id: 'crm', sources: ['shop'], hooks }] }
  const options = { file: 'catalog.yaml', version: '1', allowAddresses: [] }
  const result = parseCatalogData(catalog, options)
  expect(result.ok ? [] : result.faults.map(({ path, problem }) => `${path} ${problem}`)).toEqual([
    'destinations[0].hooks[0].login.tokenUrl has an address that is not public',
  ])
  expect(parseCatalogData(catalog, { ...options, allowAddresses: ['10.0.0.0/8'] }).ok).toBe(true)
})

describe('a fault is named without its value', () => {
  const { key, cert: certificate } = identity
  const basic = { kind: 'basic', username: 'u' }
  test.each<[string, Given, readonly string[]]>([
    [
      'no user name',
      { hook: { login: { kind: 'basic' } } },
      ['login.username is missing, which a login of the kind basic needs'],
    ],
    [
      'a colon in it',
      { hook: { login: { ...basic, username: 'a:b' } } },
      ['login.username has a colon, which ends a user name'],
    ],
    [
      'a line break in a password',
      { hook: { login: { ...basic, password: 'a\nb' } } },
      ['login.password has a control character or line break'],
    ],
    [
      'two logins',
      { hook: { login: basic, headers: { authorization: 'Bearer x' } } },
      ['login is set beside the header Authorization, and a request has only one login'],
    ],
    [
      'what oauth2 needs',
      { hook: { login: { kind: 'oauth2' } } },
      ['tokenUrl', 'clientId', 'clientSecret'].map(
        (field) => `login.${field} is missing, which a login of the kind oauth2 needs`,
      ),
    ],
    [
      'fields of the other kind',
      { hook: { login: { ...basic, scope: 'a' } } },
      ['login.scope is not a field of a login of the kind basic'],
    ],
    [
      'a token endpoint that is no URL',
      { hook: { login: { ...oauth, clientSecret: 's', tokenUrl: 'login.example' } } },
      ['login.tokenUrl is not a full http or https URL'],
    ],
    [
      'a variable in a place that is shown',
      { hook: { login: { ...oauth, clientSecret: 's', clientId: '${CATALOG_I}' } } },
      ['login.clientId names a variable, and is used as it is written here'],
    ],
    [
      'another kind',
      { hook: { login: { kind: 'digest' } } },
      ['login.kind is not a value that is known here'],
    ],
    [
      'an unset variable',
      { hook: { login: { ...basic, password: '${CATALOG_P}' } } },
      ['login.password names the environment variable CATALOG_P, which is not set'],
    ],
    ['a certificate alone', { hook: { tls: { certificate } } }, ['tls.certificate is set without its key']],
    ['a key alone', { hook: { tls: { key } } }, ['tls.key is set without its certificate']],
    [
      'the key of another certificate',
      { hook: { tls: { certificate, key: other.key } } },
      ['tls.key is not the key of the certificate'],
    ],
    ['an encrypted key', { hook: { tls: { certificate, key: encrypted } } }, ['tls.key is encrypted']],
    [
      'no PEM',
      { hook: { tls: { certificate: 'x', key: 'y', ca: 'z' } } },
      [
        'tls.certificate is not a whole certificate in PEM',
        'tls.key is not a private key in PEM',
        'tls.ca is not a whole certificate in PEM',
      ],
    ],
    [
      'a certificate that was cut off',
      { hook: { tls: { ca: `${certificate}${authority.cert.slice(0, 200)}` } } },
      ['tls.ca is not a whole certificate in PEM'],
    ],
    [
      'a URL without TLS',
      { hook: { url: 'http://crm.example/', tls: { ca: authority.cert } } },
      ['tls has no effect, because the URL begins with http'],
    ],
    ['nothing in tls', { hook: { tls: {} } }, ['tls is empty']],
    ['a short timeout', { destination: { timeout: '99ms' } }, ['timeout is out of range']],
    ['a long timeout', { destination: { timeout: '61s' } }, ['timeout is out of range']],
    [
      'a timeout in words',
      { destination: { timeout: '5 seconds' } },
      ['timeout is not written as it has to be'],
    ],
  ])('%s', (_, given, expected) => {
    expect(faultsOf(given)).toEqual(expected)
  })

  test('a key that TLS does not take', () => {
    const pem = shortKey.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    expect(faultsOf({ hook: { tls: { certificate, key: pem } } })).toEqual([
      'tls.key is not the key of the certificate',
    ])
  })
})

test('a certificate in a variable that is not set can be stood in for', () => {
  const tls = { certificate: '${CATALOG_C}', key: '${CATALOG_K}', ca: '${CATALOG_A}' }
  const result = parse({ hook: { tls } })
  const lacking = result.ok ? [] : result.faults.filter(({ isPem }) => isPem === true)
  expect(lacking.map(({ variable }) => variable)).toEqual(['CATALOG_C', 'CATALOG_K', 'CATALOG_A'])
  const variables = { CATALOG_C: unknownPem, CATALOG_K: unknownPem, CATALOG_A: unknownPem }
  expect(faultsOf({ hook: { tls }, variables })).toEqual([])
})

describe('keys of Ed25519', () => {
  const signingKey = newSigningKey()

  test('are read, also from a variable, and need no secret', () => {
    const signing = { ed25519: ['${CATALOG_E}'] }
    expect(
      parsed({ destination: { signing }, variables: { CATALOG_E: signingKey } }).destination.signingKeys,
    ).toEqual([signingKey])
  })

  test.each<[string, object, readonly string[]]>([
    ['another text', { ed25519: ['whsec_YQ=='] }, ['signing.ed25519[0] is not a private key of Ed25519']],
    [
      'the same twice',
      { ed25519: [signingKey, signingKey] },
      ['signing.ed25519[1] is a key that is listed before'],
    ],
    ['none', { ed25519: [] }, ['signing.ed25519 has too few entries']],
    [
      'more than three',
      { ed25519: Array.from({ length: 4 }, newSigningKey) },
      ['signing.ed25519 has too many entries'],
    ],
  ])('are refused if there is %s', (_, signing, expected) => {
    expect(faultsOf({ destination: { signing } })).toEqual(expected)
  })
})

test('an edit is told by the names of the fields', () => {
  const [before, after] = [
    parsed({ destination: { timeout: '1s' } }),
    parsed({ destination: { timeout: '2s' } }),
  ]
  const sides = [before, after].map(({ catalog }) => ({ outline: outlineOf(catalog), catalog }))
  const [from, to] = sides
  if (from === undefined || to === undefined) throw new Error('a side is missing')
  expect(changesBetween(from, to)).toEqual({ destinations: ['crm: timeout'] })
})
