import { request as httpRequest } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTenants, type Tenants } from '../../support/two-tenants.ts'
import { until } from '../../support/until.ts'
import { type SluiceProcess, startSluice } from '../../support/worker-process.ts'

// Browsers at two processes of the admin API. The second one is behind a proxy with TLS and a path.

const publicUrl = 'https://ops.example.com/sluice'
let tenants: Tenants
let second: SluiceProcess

beforeAll(async () => {
  tenants = await openTenants()
  second = await startSluice(
    {
      ...tenants.scene.variables,
      SLUICE_ADMIN_PUBLIC_URL: publicUrl,
      SLUICE_ADMIN_TRUSTED_PROXIES: '127.0.0.0/8',
      SLUICE_ADMIN_SESSION_IDLE_TIMEOUT: '1m',
    },
    { role: 'admin' },
  )
})

afterAll(async () => {
  await second?.kill()
  await tenants?.close()
})

type Sent = {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly at?: SluiceProcess
}

/** Sends a request as a browser does, without a token. `fetch` doesn't let a program choose all headers. */
async function browse(method: string, path: string, { headers = {}, body, at = tenants.admin }: Sent = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number
    cookies: readonly string[]
    headers: Readonly<Record<string, unknown>>
    text: string
  }>()
  const sent = httpRequest(
    {
      host: '127.0.0.1',
      port: at.adminPort,
      method,
      path,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    },
    (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          cookies: response.headers['set-cookie'] ?? [],
          headers: response.headers,
          text,
        }),
      )
    },
  )
  sent.on('error', reject)
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  return promise
}

const originOf = (at = tenants.admin): string => `http://127.0.0.1:${at.adminPort}`

/** Signs in, and returns the cookie as a browser sends it. */
async function signIn(body: object, { at = tenants.admin, headers = {} }: Sent = {}): Promise<string> {
  const answer = await browse('POST', '/v1/session', {
    body,
    at,
    headers: { origin: originOf(at), ...headers },
  })
  expect([answer.status, answer.text]).toEqual([204, ''])
  return answer.cookies[0]?.split(';')[0] ?? ''
}

const statusOf = async (cookie: string, at = tenants.admin): Promise<number> =>
  (await browse('GET', '/v1/session', { headers: { cookie }, at })).status

type ListedSession = {
  readonly id: string
  readonly name: string
  readonly holder: string
  readonly isOwn: boolean
}

const sessionsIn = ({ sessions }: Record<string, unknown>): readonly ListedSession[] => Object(sessions)

describe('signing in', () => {
  test('a token begins a session with its rights and scope, which a cookie keeps from scripts', async () => {
    const token = await tenants.token({
      name: 'acme-desk',
      right: 'operate',
      scope: { label: 'tenant=acme' },
    })
    const answer = await browse('POST', '/v1/session', { body: { token }, headers: { origin: originOf() } })
    expect(answer.status).toBe(204)
    expect(answer.cookies).toEqual([
      expect.stringMatching(
        new RegExp(
          `^sluice-${tenants.admin.adminPort}=sluice_session_[\\w-]{43}; Path=/; HttpOnly; SameSite=Strict$`,
        ),
      ),
    ])
    const cookie = answer.cookies[0]?.split(';')[0] ?? ''
    const shown = await browse('GET', '/v1/session', { headers: { cookie } })
    expect(JSON.parse(shown.text)).toMatchObject({
      name: 'acme-desk',
      rights: ['read', 'operate'],
      scope: { label: 'tenant=acme' },
      isSession: true,
    })
    const listed = await browse('GET', '/v1/destinations', { headers: { cookie } })
    expect(listed.text).toContain('acme.crm')
    expect(listed.text).not.toContain('globex')
    expect((await browse('GET', '/v1/status', { headers: { cookie } })).status).toBe(403)
  })

  test('each sign-in has a new secret, whatever cookie the browser had, and ends the former session', async () => {
    const { admin: token } = tenants.tokens
    const name = `sluice-${tenants.admin.adminPort}`
    const chosen = `${name}=sluice_session_${'x'.repeat(43)}`
    const first = await signIn({ token }, { headers: { cookie: chosen } })
    expect(first).not.toBe(chosen)
    expect(await statusOf(chosen)).toBe(401)
    expect(await statusOf(first)).toBe(200)
    const next = await signIn({ token }, { headers: { cookie: first } })
    expect([await statusOf(first), await statusOf(next)]).toEqual([401, 200])
    // A name that comes twice was set by somebody else too.
    expect(await statusOf(`${next}; ${chosen}`)).toBe(401)
  })

  test('a session is no token, and a token is no session', async () => {
    const { admin: token } = tenants.tokens
    const cookie = await signIn({ token })
    const [name, secret = ''] = cookie.split('=')
    expect((await tenants.call('GET', '/v1/session', { token: secret })).status).toBe(401)
    expect(await statusOf(`${name}=${token}`)).toBe(401)
    expect((await browse('POST', '/v1/session', { body: { token: secret } })).status).toBe(401)
    expect((await browse('POST', '/v1/session', { body: { code: secret } })).status).toBe(401)
    expect((await tenants.call('GET', '/v1/tokens')).text).not.toContain('session.')
  })

  test('a code signs in once, on any process, as the token that made it', async () => {
    const token = await tenants.token({ name: 'coded', right: 'read', scope: 'all' })
    const { json, status } = await tenants.call('POST', '/v1/session/codes', { token })
    const code = String(json['code'])
    expect([status, json['path']]).toEqual([201, `/console/#code=${code}`])
    const tries = await Promise.all(
      [tenants.admin, second, tenants.admin].map((at) =>
        browse('POST', '/v1/session', { body: { code }, at }),
      ),
    )
    expect(tries.map((one) => one.status).toSorted((one, other) => one - other)).toEqual([204, 401, 401])
    const again = await browse('POST', '/v1/session', { body: { code } })
    expect([again.status, again.text]).toEqual([401, expect.stringContaining('sluice console')])
    const headers = { cookie: await signIn({ token }), origin: originOf() }
    expect((await browse('POST', '/v1/session/codes', { headers })).status).toBe(409)
  })

  test('many wrong tokens of one address have to wait', async () => {
    const from = { 'x-forwarded-for': '198.51.100.7' }
    const statuses: number[] = []
    for (let one = 0; one < 40; one++)
      statuses.push(
        (await browse('POST', '/v1/session', { body: { token: `wrong-${one}` }, at: second, headers: from }))
          .status,
      )
    expect(statuses.slice(0, 30)).toEqual(Array.from({ length: 30 }, () => 401))
    expect(statuses.at(-1)).toBe(429)
    const right = await browse('POST', '/v1/session', {
      body: { token: tenants.tokens.read },
      at: second,
      headers: from,
    })
    expect([right.status, Number(right.headers['retry-after']) > 0]).toEqual([429, true])
    const other = { 'x-forwarded-for': '198.51.100.8' }
    expect(
      (
        await browse('POST', '/v1/session', {
          body: { token: tenants.tokens.read },
          at: second,
          headers: other,
        })
      ).status,
    ).toBe(204)
  })
})

describe('a session ends', () => {
  test('by signing out, on every process', async () => {
    const cookie = await signIn({ token: tenants.tokens.read })
    const elsewhere = cookie.replace(/^[^=]+/, '__Secure-sluice')
    await until('the other process knows it', async () => (await statusOf(elsewhere, second)) === 200)
    const out = await browse('DELETE', '/v1/session', { headers: { cookie, origin: originOf() } })
    expect([out.status, out.cookies[0]]).toEqual([204, expect.stringMatching(/^sluice-\d+=; .*Max-Age=0$/)])
    expect(await statusOf(cookie)).toBe(401)
    await until('the other process has read it', async () => (await statusOf(elsewhere, second)) === 401)
  })

  test('when somebody ends it, or all of its token, on every process, and the audit trail says so', async () => {
    const token = await tenants.token({ name: 'desk', right: 'operate', scope: 'all' })
    const cookies = [await signIn({ token }), await signIn({ token }), await signIn({ token })]
    const statuses = (at = tenants.admin) =>
      Promise.all(
        cookies.map((cookie) =>
          statusOf(at === second ? cookie.replace(/^[^=]+/, '__Secure-sluice') : cookie, at),
        ),
      )
    await until('the other process knows them', async () => !(await statuses(second)).includes(401))
    const all = await tenants.call('GET', '/v1/sessions?limit=1000')
    expect(all.text).not.toContain('sluice_session')
    const ofDesk = sessionsIn(all.json).filter(({ name }) => name === 'desk')
    expect(ofDesk).toMatchObject(
      cookies.map(() => ({
        kind: 'token',
        holder: 'token.desk',
        rights: ['read', 'operate'],
        scope: 'all',
        isOwn: false,
      })),
    )
    const end = async (path: string) => {
      const { status, json } = await tenants.call('DELETE', `/v1/sessions/${path}`)
      return [status, json['ended']]
    }
    const first = ofDesk[0]?.id ?? ''
    expect(await end(first)).toEqual([200, 1])
    expect(await statuses()).toEqual([401, 200, 200])
    expect(await end(first)).toEqual([404, undefined])

    const { json } = await tenants.call('POST', '/v1/session/codes', { token })
    expect(await end('of/token.desk')).toEqual([200, 2])
    expect(await statuses()).toEqual([401, 401, 401])
    await until('the other process has read it', async () => !(await statuses(second)).includes(200))
    expect((await browse('POST', '/v1/session', { body: { code: json['code'] } })).status).toBe(401)
    expect(await end('of/token.desk')).toEqual([404, undefined])
    const { text } = await tenants.call('GET', '/v1/audit?limit=1000')
    for (const told of ['ended a session: desk', 'ended 2 sessions: desk']) expect(text).toContain(told)
    // It keeps nobody from signing in again.
    expect(await statusOf(await signIn({ token }))).toBe(200)
  })

  test('and is listed until then, page by page, with which of them is one’s own', async () => {
    const cookie = await signIn({ token: tenants.tokens.admin })
    const own = await browse('GET', '/v1/sessions?limit=1000', { headers: { cookie } })
    const all = sessionsIn(JSON.parse(own.text))
    expect(all.filter(({ isOwn }) => isOwn)).toMatchObject([{ name: 'admin-er' }])
    const paged: string[] = []
    for (let cursor: unknown = ''; typeof cursor === 'string';) {
      const query = cursor === '' ? '' : `&cursor=${cursor}`
      const { json } = await tenants.call('GET', `/v1/sessions?limit=2${query}`)
      paged.push(...sessionsIn(json).map(({ id }) => id))
      cursor = json['cursor']
    }
    expect(paged).toEqual(all.map(({ id }) => id))
    for (const wrong of ['x', 'e30'])
      expect((await tenants.call('GET', `/v1/sessions?cursor=${wrong}`)).status).toBe(400)
  })

  test('with its token, at once', async () => {
    const token = await tenants.token({ name: 'leaver', right: 'admin', scope: 'all' })
    const cookie = await signIn({ token })
    expect(await statusOf(cookie)).toBe(200)
    expect((await tenants.call('DELETE', '/v1/tokens/leaver')).status).toBe(200)
    expect(await statusOf(cookie)).toBe(401)
  })

  test('no later than its token', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const token = await tenants.token({ name: 'short', right: 'read', scope: 'all', expiresAt })
    const { text } = await browse('GET', '/v1/session', { headers: { cookie: await signIn({ token }) } })
    expect(JSON.parse(text)).toMatchObject({ ends: expiresAt })
  })
})

describe('a page of another site', () => {
  const foreign = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    {},
  ]

  test('changes nothing with the cookie of a browser', async () => {
    const cookie = await signIn({ token: tenants.tokens.admin })
    const body = { selection: { of: 'dead-letters' }, all: true, again: true }
    for (const headers of foreign) {
      const answer = await browse('POST', '/v1/replays', { body, headers: { cookie, ...headers } })
      expect([headers, answer.status, JSON.parse(answer.text).type]).toEqual([
        headers,
        403,
        '/problems/other-site',
      ])
      const out = await browse('DELETE', '/v1/session', { headers: { cookie, ...headers } })
      expect(out.status).toBe(403)
    }
    const own = await browse('POST', '/v1/replays/preview', {
      body,
      headers: { cookie, origin: originOf(), 'sec-fetch-site': 'same-origin' },
    })
    expect(own.status).toBe(200)
  })

  test('reads nothing with it, and signs nobody in', async () => {
    const cookie = await signIn({ token: tenants.tokens.admin })
    for (const headers of foreign.slice(0, 4)) {
      expect((await browse('GET', '/v1/tokens', { headers: { cookie, ...headers } })).status).toBe(401)
      const answer = await browse('POST', '/v1/session', { body: { token: tenants.tokens.read }, headers })
      expect([answer.status, answer.cookies]).toEqual([403, []])
    }
    // A form can send no JSON.
    const form = { origin: originOf(), 'content-type': 'text/plain' }
    expect((await browse('POST', '/v1/session', { body: { token: 'x' }, headers: form })).status).toBe(415)
  })
})

describe('a link of a customer', () => {
  const order = { name: 'acme-people', label: 'tenant=acme', rights: ['see', 'edit_url'] }

  async function makeLink(more: object = {}, token = tenants.tokens.admin) {
    const { status, json } = await tenants.call('POST', '/v1/links', { token, body: { ...order, ...more } })
    return { status, id: String(json['id']), secret: String(json['link']).split('#link=')[1] ?? '', json }
  }

  async function makeInBrowser(token: string, expiresAt: string) {
    const headers = { cookie: await signIn({ token }), origin: originOf() }
    return browse('POST', '/v1/links', { headers, body: { ...order, expiresAt } })
  }

  test('shows what has the label, and does what it names', async () => {
    const { json, secret } = await makeLink()
    expect(json).toMatchObject({
      link: `/console/#link=${secret}`,
      label: 'tenant=acme',
      rights: ['see', 'edit_url'],
      createdBy: 'admin-er',
    })
    const lasts = Date.parse(String(json['expiresAt'])) - Date.parse(String(json['createdAt']))
    expect(Math.round(lasts / 86_400_000)).toBe(7)
    const cookie = await signIn({ link: secret })
    const headers = { cookie, origin: originOf() }
    const session = JSON.parse((await browse('GET', '/v1/session', { headers })).text)
    expect(session).toMatchObject({
      name: 'acme-people',
      rights: ['see', 'edit_url'],
      label: 'tenant=acme',
      isLink: true,
    })
    const path = '/v1/destinations/acme.crm'
    const etag = async () => String((await browse('GET', path, { headers })).headers['etag'])
    const patch = async (body: object) =>
      (await browse('PATCH', path, { headers: { ...headers, 'if-match': await etag() }, body })).status
    const url = 'https://acme.example/new'
    expect(await patch({ hooks: [{ id: 'main', url }] })).toBe(200)
    // No other field, no other URL, no secret that is kept elsewhere.
    for (const body of [
      { name: 'x' },
      { hooks: [{ id: 'main', url }], state: 'off' },
      { hooks: [{ id: 'main', url, headers: {} }] },
      { hooks: [{ id: 'other', url }] },
      { hooks: [{ id: 'main', url: 'https://evil.example/${kept:x:0123456789abcdef}' }] },
      { hooks: null },
    ])
      expect([body, await patch(body)]).toEqual([body, 403])
    expect((await browse('POST', `${path}/test`, { headers, body: {} })).status).toBe(403)
    const foreign = await browse('GET', '/v1/destinations/globex.crm', { headers })
    expect(foreign.status).toBe(404)
    const { text } = await tenants.call('GET', '/v1/audit?limit=1000')
    expect(text).toMatch(/"action":"signed_in",[^}]*"signed in: link:acme-people"/)
    expect(text).toMatch(/"action":"links_changed",[^}]*"\+link\.\w+ acme-people: /)
    expect(text).toContain('acme-people: see, edit_url, tenant=acme, until ')
  })

  test('gives no more than its maker may do, and is made for one label only', async () => {
    const scope = { label: 'tenant=acme' }
    const operator = await tenants.token({ name: 'acme-op', right: 'operate', scope })
    const all = await tenants.token({ name: 'op', right: 'operate', scope: 'all' })
    const list = await tenants.token({
      name: 'of-list',
      right: 'admin',
      scope: { destinations: ['acme.crm'] },
    })
    const reader = await tenants.token({ name: 'acme-reader', right: 'read', scope })
    expect((await makeLink({ rights: ['see', 'replay', 'test'] }, operator)).status).toBe(201)
    for (const rights of [['edit_url'], ['rotate', 'see']])
      expect((await makeLink({ rights }, operator)).status).toBe(403)
    expect((await makeLink({ label: 'tenant=globex', rights: ['see'] }, operator)).status).toBe(403)
    for (const token of [all, list, reader])
      expect((await makeLink({ rights: ['see'] }, token)).status).toBe(403)
    const far = new Date(Date.now() + 91 * 86_400_000).toISOString()
    for (const more of [
      { expiresAt: far },
      { expiresAt: '2020-01-01T00:00:00Z' },
      { rights: [] },
      { label: 'acme' },
      { scope: 'all' },
    ])
      expect([more, (await makeLink(more)).status]).toEqual([more, 400])
  })

  test('is nothing when it is changed by hand, and no token and no code', async () => {
    const { secret } = await makeLink()
    const given = [`${secret}x`, secret.slice(0, -1), secret.toLowerCase()]
    for (const link of given)
      expect((await browse('POST', '/v1/session', { body: { link } })).status).toBe(401)
    for (const body of [{ token: secret }, { code: secret }])
      expect((await browse('POST', '/v1/session', { body })).status).toBe(401)
    expect((await tenants.call('GET', '/v1/session', { token: secret })).status).toBe(401)
    const two = { link: secret, token: tenants.tokens.read }
    expect((await browse('POST', '/v1/session', { body: two })).status).toBe(400)
  })

  test('may outlive the session that makes it, but not the token', async () => {
    const expiresAt = new Date(Date.now() + 30 * 86_400_000).toISOString()
    const made = await makeInBrowser(tenants.tokens.admin, expiresAt)
    expect([made.status, JSON.parse(made.text)]).toMatchObject([201, { expiresAt }])
    const end = new Date(Date.now() + 3_600_000).toISOString()
    const token = await tenants.token({ name: 'brief', right: 'admin', scope: 'all', expiresAt: end })
    const refused = await makeInBrowser(token, expiresAt)
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(`after ${end}`)])
    expect((await makeInBrowser(token, end)).status).toBe(201)
  })

  test('ends with all its sessions when it is revoked', async () => {
    const { id, secret } = await makeLink()
    const cookie = await signIn({ link: secret })
    const listed = await tenants.call('GET', '/v1/links')
    expect(listed.text).toContain(id)
    expect(listed.text).not.toMatch(/sluice_link|[0-9a-f]{64}/)
    expect((await tenants.call('DELETE', `/v1/links/${id}`)).status).toBe(200)
    expect(await statusOf(cookie)).toBe(401)
    expect((await browse('POST', '/v1/session', { body: { link: secret } })).text).toContain('was revoked')
    expect((await tenants.call('DELETE', `/v1/links/${id}`)).status).toBe(404)
  })
})

describe('behind a proxy with TLS and a path', () => {
  const origin = 'https://ops.example.com'

  test('a cookie is only for this path, over TLS', async () => {
    const answer = await browse('POST', '/sluice/v1/session', {
      body: { token: tenants.tokens.read },
      headers: { origin, host: 'ops.example.com' },
      at: second,
    })
    expect(answer.cookies).toEqual([
      expect.stringMatching(/^__Secure-sluice=[\w-]+; Path=\/sluice; HttpOnly; SameSite=Strict; Secure$/),
    ])
    const cookie = answer.cookies[0]?.split(';')[0] ?? ''
    for (const path of ['/sluice/v1/session', '/v1/session'])
      expect((await browse('GET', path, { headers: { cookie }, at: second })).status).toBe(200)
    expect((await browse('GET', '/sluicex/v1/session', { headers: { cookie }, at: second })).status).toBe(404)
  })

  test('the root leads to the console, and no page may be framed', async () => {
    for (const path of ['/sluice/', '/sluice', '/']) {
      const { status, headers } = await browse('GET', path, { at: second })
      expect([path, status, headers['location']]).toEqual([path, 302, '/sluice/console/'])
    }
    const { headers } = await browse('GET', '/sluice/console/', { at: second })
    expect(headers).toMatchObject({
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    })
    const policy = String(headers['content-security-policy'])
    expect(policy).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'self'; .*frame-ancestors 'none'; base-uri 'none'/,
    )
    expect(policy).toContain('report-uri /sluice/console-reports')
  })

  test('what a browser refuses is in the log, without what was in the query', async () => {
    const report = {
      'csp-report': {
        'effective-directive': 'script-src',
        'blocked-uri': 'https://evil.example/x.js?token=1',
        'document-uri': `${publicUrl}/console/#code=2`,
      },
    }
    const headers = { 'content-type': 'application/csp-report' }
    expect(
      (await browse('POST', '/sluice/console-reports', { body: report, headers, at: second })).status,
    ).toBe(204)
    const line = await until('the log has it', () =>
      second.log.find((one) => one['directive'] === 'script-src'),
    )
    expect(line).toMatchObject({
      msg: 'a browser has refused a part of the console, which its policy forbids',
      blocked: 'https://evil.example/x.js',
      page: `${publicUrl}/console/`,
    })
    // No other route takes this type, which browsers send without asking.
    expect((await browse('POST', '/v1/session', { body: { token: 'x' }, headers, at: second })).status).toBe(
      415,
    )
  })
})

test('a session that is used goes on, and what it has done is under the name of its token', async () => {
  const cookie = (await signIn({ token: tenants.tokens.admin })).replace(/^[^=]+/, '__Secure-sluice')
  await until('the other process knows it', async () => (await statusOf(cookie, second)) === 200)
  const { text } = await tenants.call('GET', '/v1/audit?limit=1000')
  expect(text).toContain('signed in: admin-er')
})

test('signing in and out is no change of the catalog, and is counted', async () => {
  const { admin, call } = tenants
  const told = async (): Promise<number> =>
    (await admin.wholeLog()).filter(({ msg }) => msg === 'the catalog has changed').length
  const signedIn = (by: string, result: string): Promise<number> =>
    admin.metric('sluice_admin_sign_ins_total', { by, result })
  const before = [await told(), await signedIn('token', 'accepted'), await signedIn('token', 'refused')]
  const sessions = await admin.metric('sluice_admin_sessions')
  const token = await tenants.token({ name: 'desk-of-metrics', right: 'read', scope: 'all' })
  const cookies = [await signIn({ token }), await signIn({ token }), await signIn({ token })]
  expect(await admin.metric('sluice_admin_sessions')).toBe(sessions + 3)
  for (const cookie of cookies.slice(1))
    await browse('DELETE', '/v1/session', { headers: { cookie, origin: originOf() } })
  expect(await admin.metric('sluice_admin_sessions')).toBe(sessions + 1)
  expect((await call('DELETE', '/v1/tokens/desk-of-metrics')).status).toBe(200)
  expect(await admin.metric('sluice_admin_sessions')).toBe(sessions)
  // What follows in the topic is told, so all that came before it would have been.
  const path = '/v1/destinations/acme.crm'
  const etag = (await call('GET', path)).headers.get('etag') ?? ''
  const changed = await call('PATCH', path, { body: { name: 'Acme' }, headers: { 'if-match': etag } })
  expect(changed.status).toBe(200)
  await until('the change is told', async () => (await told()) > (before[0] ?? 0))
  await browse('POST', '/v1/session', { body: { token: 'sluice_wrong' } })
  expect([await told(), await signedIn('token', 'accepted'), await signedIn('token', 'refused')]).toEqual([
    (before[0] ?? 0) + 1,
    (before[1] ?? 0) + 3,
    (before[2] ?? 0) + 1,
  ])
})
