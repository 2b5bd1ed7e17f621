import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type OpenIdProvider, startOpenIdProvider } from '../../support/openid-provider.ts'
import { openTenants, type Tenants } from '../../support/two-tenants.ts'
import { until } from '../../support/until.ts'
import { type SluiceProcess, startSluice } from '../../support/worker-process.ts'

// Browsers that sign in at a real provider of OpenID, and come back to the admin API behind a proxy.

const publicUrl = 'https://ops.example.com/sluice'
const folder = mkdtempSync(join(tmpdir(), 'sluice-oidc-'))
let tenants: Tenants
let provider: OpenIdProvider
let admin: SluiceProcess

beforeAll(async () => {
  provider = await startOpenIdProvider()
  writeFileSync(join(folder, 'secret'), `${provider.client.secret}\n`)
  tenants = await openTenants()
  admin = await startSluice(
    {
      ...tenants.scene.variables,
      SLUICE_ADMIN_PUBLIC_URL: publicUrl,
      SLUICE_ADMIN_OIDC_ISSUER: provider.issuer,
      SLUICE_ADMIN_OIDC_CLIENT_ID: provider.client.id,
      SLUICE_ADMIN_OIDC_CLIENT_SECRET_FILE: join(folder, 'secret'),
      SLUICE_ADMIN_OIDC_RIGHTS: 'ops: admin no-content,acme people: read content tenant=acme',
      SLUICE_ADMIN_TRUSTED_PROXIES: '127.0.0.0/8',
    },
    { role: 'admin' },
  )
})

afterAll(async () => {
  await Promise.all([admin?.kill(), tenants?.close(), provider?.close()])
  rmSync(folder, { recursive: true, force: true })
})

let visitors = 0
let address = ''

beforeEach(() => {
  provider.account = { sub: 'ann-1', claims: { email: 'ann@example.com', groups: ['staff', 'ops'] } }
  provider.forged = {}
  provider.usesOtherKey = false
  // Each test comes from another address, because wrong sign-ins of one address have to wait.
  address = `198.51.100.${++visitors}`
})

type Came = { readonly status: number; readonly location: string; readonly cookies: readonly string[] }

/** Sends a request as the proxy passes it on. */
async function browse(url: string, cookie = ''): Promise<Came> {
  const { pathname, search } = new URL(url, publicUrl)
  const response = await fetch(`http://127.0.0.1:${admin.adminPort}${pathname}${search}`, {
    redirect: 'manual',
    headers: { 'x-forwarded-for': address, ...(cookie !== '' && { cookie }) },
  })
  await response.arrayBuffer()
  const { status, headers } = response
  return { status, location: headers.get('location') ?? '', cookies: headers.getSetCookie() }
}

const pairOf = (cookies: readonly string[], name: string): string =>
  cookies.find((one) => one.startsWith(`${name}=`))?.split(';')[0] ?? ''

/** Goes to the provider, and returns where it sends the browser back to, with what the browser keeps. */
async function toProvider(to = ''): Promise<{ back: string; kept: string; begun: Came }> {
  const begun = await browse(`${publicUrl}/console/oidc/start?to=${encodeURIComponent(to)}`)
  const kept = pairOf(begun.cookies, '__Secure-sluice-sign-in')
  const { headers } = await fetch(begun.location, { redirect: 'manual' })
  return { back: headers.get('location') ?? '', kept, begun }
}

async function signIn(to = ''): Promise<Came & { readonly session: string }> {
  const { back, kept } = await toProvider(to)
  const came = await browse(back, kept)
  return { ...came, session: pairOf(came.cookies, '__Secure-sluice') }
}

async function read(path: string, cookie: string) {
  const response = await fetch(`http://127.0.0.1:${admin.adminPort}${path}`, { headers: { cookie } })
  const text = await response.text()
  return { status: response.status, text, json: JSON.parse(text === '' ? '{}' : text) }
}

const refusal = (why: string): string => `/sluice/console/#refused=${why}`

describe('who signs in at the provider', () => {
  test('has the right of the first value of the claim that the settings name, and lands on the page', async () => {
    const { status, location, cookies, session } = await signIn('message?id=order-4711')
    expect([status, location]).toEqual([303, '/sluice/console/message?id=order-4711'])
    expect(cookies).toEqual([
      expect.stringMatching(
        /^__Secure-sluice=sluice_session_[\w-]{43}; Path=\/sluice; HttpOnly; SameSite=Strict; Secure$/,
      ),
      expect.stringMatching(/^__Secure-sluice-sign-in=; .*Max-Age=0; HttpOnly; SameSite=Lax; Secure$/),
    ])
    expect((await read('/v1/session', session)).json).toMatchObject({
      name: 'oidc:ann@example.com',
      rights: ['read', 'operate', 'admin'],
      content: false,
      scope: 'all',
      isLink: false,
    })
    const audit = await tenants.call('GET', '/v1/audit?limit=100')
    expect(audit.text).toContain('signed in: oidc:ann@example.com')
  })

  test('sees with a label what has the label, also if the claim is only in the answer about the user', async () => {
    provider.account = { sub: 'bob', info: { groups: 'acme people', email: 'bob@example.com' } }
    const { session } = await signIn()
    expect((await read('/v1/session', session)).json).toMatchObject({
      rights: ['read'],
      content: true,
      scope: { label: 'tenant=acme' },
    })
    const { text } = await read('/v1/destinations', session)
    expect(text).toContain('acme.crm')
    expect(text).not.toContain('globex')
  })

  test('is named by the subject if the address is not verified, in characters that a log can have', async () => {
    provider.account = {
      sub: 'x\n|y',
      claims: { groups: ['ops'], email: 'ann@example.com', email_verified: false },
    }
    const { session } = await signIn()
    expect((await read('/v1/session', session)).json.name).toBe('oidc:x__y')
  })

  test('loses at the next sign-in, in all sessions, what the provider says no more', async () => {
    provider.account = { sub: 'carl', claims: { groups: ['ops', 'acme people'] } }
    const first = (await signIn()).session
    expect((await read('/v1/audit', first)).status).toBe(200)
    provider.account = { sub: 'carl', claims: { groups: ['acme people'] } }
    await signIn()
    expect((await read('/v1/audit', first)).status).toBe(403)
  })

  test('without such a value gets no session, and the log says who it was', async () => {
    provider.account = { sub: 'eve', claims: { groups: ['staff'], email: 'eve@example.com' } }
    const { location, session } = await signIn()
    expect([location, session]).toEqual([refusal('no_right'), ''])
    await until('the log says so', () =>
      admin.log.some(
        ({ name, msg }) =>
          name === 'oidc:eve@example.com' &&
          msg === 'somebody has signed in at the OpenID provider who has no right here',
      ),
    )
  })

  test('and refuses there, is told so', async () => {
    provider.account = undefined
    expect((await signIn()).location).toBe(refusal('denied'))
  })
})

describe('nobody signs in', () => {
  test('as somebody else, by an answer that another browser began, or by one that was used', async () => {
    const [victim, attacker] = [await toProvider(), await toProvider()]
    const before = provider.exchanged()
    for (const kept of ['', attacker.kept, victim.kept.replace('=', '=x')])
      expect((await browse(victim.back, kept)).location).toBe(refusal('stale'))
    expect(provider.exchanged()).toBe(before)
    const first = await browse(victim.back, victim.kept)
    expect(pairOf(first.cookies, '__Secure-sluice')).not.toBe('')
    const again = await browse(victim.back, victim.kept)
    expect([again.location, pairOf(again.cookies, '__Secure-sluice')]).toEqual([refusal('failed'), ''])
  })

  test.each([
    ['another nonce', { nonce: 'x' }],
    ['another client', { aud: 'other' }],
    ['another issuer', { iss: 'https://evil.example' }],
    ['a time that is over', { exp: 1_700_000_000 }],
  ])('with an ID token that has %s', async (_what, forged) => {
    provider.forged = forged
    const { location, session } = await signIn()
    expect([location, session]).toEqual([refusal('failed'), ''])
  })

  test('with an ID token that somebody else has signed', async () => {
    provider.usesOtherKey = true
    const { location, session } = await signIn()
    expect([location, session]).toEqual([refusal('failed'), ''])
    await until('the log says so', () =>
      admin.log.some(({ msg }) => msg === 'the OpenID provider has not answered as it should'),
    )
  })
})

async function endAllOf(holder = ''): Promise<number> {
  return (await tenants.call('DELETE', `/v1/sessions/of/${holder}`, {}, admin)).status
}

test('somebody ends all sessions of one person, who can sign in again, and those of nobody else', async () => {
  const ofAnn = [(await signIn()).session, (await signIn()).session]
  // The name is the same, and the person is another one.
  provider.account = { sub: 'ann-2', claims: { email: 'ann@example.com', groups: ['ops'] } }
  const other = (await signIn()).session
  const { json } = await read('/v1/sessions?limit=1000', other)
  const people: { name: string; kind: string; holder: string; isOwn: boolean }[] = json.sessions
  const anns = people.filter(({ name }) => name === 'oidc:ann@example.com')
  const own = anns.find(({ isOwn }) => isOwn)
  const theirs = anns.find(({ holder }) => holder !== own?.holder)
  expect([own?.kind, theirs?.kind]).toEqual(['person', 'person'])
  expect(await endAllOf(theirs?.holder)).toBe(200)
  for (const cookie of ofAnn) expect((await read('/v1/session', cookie)).status).toBe(401)
  expect((await read('/v1/session', other)).status).toBe(200)
  expect(await endAllOf(theirs?.holder)).toBe(404)
  provider.account = { sub: 'ann-1', claims: { email: 'ann@example.com', groups: ['ops'] } }
  expect((await read('/v1/session', (await signIn()).session)).status).toBe(200)
})

test('the provider gets a challenge and a nonce, and the browser keeps a cookie that no script can read', async () => {
  const { begun } = await toProvider()
  const asked = new URL(begun.location)
  expect(asked.href.startsWith(`${provider.issuer}/authorize?`)).toBe(true)
  expect(Object.fromEntries(asked.searchParams)).toMatchObject({
    client_id: 'sluice',
    redirect_uri: `${publicUrl}/console/oidc/callback`,
    response_type: 'code',
    scope: 'openid email profile',
    code_challenge_method: 'S256',
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    nonce: expect.stringMatching(/^[\w-]{43}$/),
    state: expect.stringMatching(/^[\w-]{43}$/),
  })
  expect(begun.cookies).toEqual([
    expect.stringMatching(
      /^__Secure-sluice-sign-in=\S+; Path=\/sluice; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
    ),
  ])
})

test('a sign-in ends on a page of the console, whatever page is named', async () => {
  for (const to of ['https://evil.example', '//evil.example', '/\\evil.example', '../v1/session', 'x#y'])
    expect((await signIn(to)).location).toBe('/sluice/console/')
})

test('the page to sign in knows of the provider, and a token still signs in', async () => {
  const known = await read('/console/sign-in.json', '')
  expect(known.json).toEqual({ provider: 'oidc/start' })
  const without = await tenants.call('GET', '/console/sign-in.json', { token: '' })
  expect(without.json).toEqual({ provider: null })
  const response = await fetch(`http://127.0.0.1:${admin.adminPort}/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
    body: JSON.stringify({ token: tenants.tokens.read }),
  })
  expect(response.status).toBe(204)
})
