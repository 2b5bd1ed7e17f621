import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AdminRoute } from '../../../src/admin/admin-route.ts'
import { adminRoutes } from '../../../src/admin/routes.ts'
import { type AdminRight, grants, rights } from '../../../src/admin/tokens.ts'
import { type Answer, OpenConnection, openTenants, type Tenants } from '../../support/two-tenants.ts'
import { until } from '../../support/until.ts'
import { runToEnd, startSluice } from '../../support/worker-process.ts'

// Each route of the table is walked with each kind of token, so a new route is walked too.

let tenants: Tenants
/** Tokens of the customer acme, by their rights, and one for a list that has one destination of acme. */
let acme: Record<AdminRight, string>
let ofList: string
/** Replays of each customer, and one of everything. */
let replays: Record<'acme' | 'globex' | 'all', string>
let versions: Record<string, string>
/** The cookie of a customer of acme who has signed in by a link with all rights that a link can have. */
let cookie: string
let globexLink: string
/** The id of a session of globex. */
let globexSession: string

beforeAll(async () => {
  tenants = await openTenants()
  const { token, call } = tenants
  const scope = { label: 'tenant=acme' }
  const [read, operate, admin] = await Promise.all(
    rights.map((right) => token({ name: `acme-${right}`, right, scope })),
  )
  if (read === undefined || operate === undefined || admin === undefined) throw new Error('no tokens')
  acme = { read, operate, admin }
  ofList = await token({ name: 'list', right: 'admin', scope: { destinations: ['acme.crm'] } })
  await token({ name: 'globex-admin', right: 'admin', scope: { label: 'tenant=globex' } })
  const replay = async (destination?: string): Promise<string> => {
    const selection = { of: 'dead-letters', ...(destination !== undefined && { destination }) }
    const { json } = await call('POST', '/v1/replays', { body: { selection, all: true, again: true } })
    return String(json['id'])
  }
  replays = {
    acme: await replay('acme.crm'),
    globex: await replay('globex.crm'),
    all: await replay(),
  }
  const link = async (name: string) => {
    const body = { name, label: `tenant=${name}`, rights: grants }
    return (await call('POST', '/v1/links', { body })).json
  }
  const signIn = async ({ link: made }: Record<string, unknown>) => {
    const body = { link: String(made).split('#link=')[1] }
    const signedIn = await call('POST', '/v1/session', { token: '', body })
    return signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
  }
  const ofGlobex = await link('globex')
  globexLink = String(ofGlobex['id'])
  await signIn(ofGlobex)
  cookie = await signIn(await link('acme'))
  const { sessions } = (await call('GET', '/v1/sessions')).json
  const held: { id: string; holder: string }[] = Object(sessions)
  globexSession = held.find(({ holder }) => holder === globexLink)?.id ?? ''
  versions = {}
  for (const id of ['acme.crm', 'acme.erp', 'globex.crm', 'globex.erp'])
    versions[id] = (await call('GET', `/v1/destinations/${id}`)).headers.get('etag') ?? ''
})

afterAll(() => tenants?.close())

/** The parts of a request that name something, each with another customer's, and with one that nobody has. */
const names: Readonly<Record<string, { readonly foreign: () => string; readonly nobody: string }>> = {
  destination: { foreign: () => 'globex.crm', nobody: 'xxxxxx.crm' },
  source: { foreign: () => 'globex-shop', nobody: 'xxxxxx-shop' },
  replay: { foreign: () => replays.globex, nobody: '20200101-000000-000000' },
  message: { foreign: () => 'globex.crm-only', nobody: 'xxxxxx.crm-only' },
  token: { foreign: () => 'globex-admin', nobody: 'xxxxxx-admin' },
  link: { foreign: () => globexLink, nobody: 'link.000000000000000000000000' },
  holder: { foreign: () => globexLink, nobody: 'link.000000000000000000000000' },
  session: { foreign: () => globexSession, nobody: 'session.000000000000000000000000' },
  // A change of the catalog concerns the whole installation.
  revision: { foreign: () => '1', nobody: '2' },
}

type Request = { readonly path: string; readonly body?: unknown }

/** Returns a request to a route as the document has it, in which each name is another one. */
function requestOf(route: AdminRoute, nameOf: (kind: string) => string): Request {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_all, kind: string) => encodeURIComponent(nameOf(kind)))
  if (route.body === undefined) return { path }
  const text = JSON.stringify(route.body.example)
    .replaceAll(/"(erp|crm)"/g, JSON.stringify(nameOf('destination')))
    .replaceAll('"shop"', JSON.stringify(nameOf('source')))
  return { path, body: JSON.parse(text) }
}

function named(kind: string): (typeof names)[string] {
  const found = names[kind]
  if (found === undefined) throw new Error(`say above what a foreign ${kind} is`)
  return found
}

const foreign = (route: AdminRoute): Request => requestOf(route, (kind) => named(kind).foreign())
const nobody = (route: AdminRoute): Request => requestOf(route, (kind) => named(kind).nobody)

const everyone = adminRoutes.map((route) => ({ ...route, what: `${route.method} ${route.path}` }))

/** Returns what an answer tells, in which names of the one request are those of the other. */
function told({ status, headers, text }: Answer): string {
  const alike = Object.values(names).reduce(
    (said, { foreign: one, nobody: other }) => said.replaceAll(one(), other),
    text,
  )
  const timeless = alike.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'T')
  return `${status} ${headers.get('etag')} ${timeless.replaceAll(/sluice_code_[\w-]+/g, 'CODE')}`
}

describe.each(everyone)('$what', (route) => {
  test('has a scope', () => {
    expect(['token', 'destination', 'within', 'installation']).toContain(route.scope)
  })

  test('refuses no token, and one that nobody made', async () => {
    const { path, body } = foreign(route)
    for (const token of ['', 'sluice_wrong', `${acme.admin}x`, acme.admin.slice(0, -1)])
      expect((await tenants.call(route.method, path, { token, body })).status).toBe(401)
  })

  test('refuses a token of a lower right, whatever its scope', async () => {
    const { path, body } = foreign(route)
    for (const right of rights.slice(0, rights.indexOf(route.right)))
      for (const token of [acme[right], tenants.tokens[right]])
        expect((await tenants.call(route.method, path, { token, body })).status).toBe(403)
  })

  test('tells a token with another scope nothing: what is foreign is what does not exist', async () => {
    // The answer has no end: live.test.ts looks at it.
    if (route.isStream === true) return
    for (const token of [acme.admin, ofList]) {
      for (const headers of [{}, { 'if-match': versions['globex.crm'] ?? '' }, { 'if-none-match': '*' }]) {
        const [one, other] = [foreign(route), nobody(route)]
        const answers = [
          await tenants.call(route.method, one.path, { token, headers, body: one.body }),
          await tenants.call(route.method, other.path, { token, headers, body: other.body }),
        ] as const
        const [ofForeign, ofNobody] = [told(answers[0]), told(answers[1])]
        expect(ofForeign).toBe(ofNobody)
        expect(ofForeign).not.toMatch(/globex|ours|read-er/i)
        if (route.scope === 'installation') expect(answers[0].status).toBe(403)
        const isNamed = route.path.includes('{') && route.scope !== 'installation'
        if (isNamed) expect([403, 404, 428]).toContain(answers[0].status)
      }
    }
  })
})

/** What a link may be used for. A new route is closed to links, until it is named here and in grants.ts. */
const openToLinks = new Set([
  'GET /v1/health',
  'GET /v1/session',
  'DELETE /v1/session',
  'POST /v1/session',
  'GET /v1/destinations',
  'GET /v1/destinations/{destination}',
  'GET /v1/destinations/{destination}/health',
  'GET /v1/destinations/{destination}/signing-keys',
  'GET /v1/paused-destinations',
  'POST /v1/log/search',
  'POST /v1/log/stats',
  'GET /v1/log/messages/{message}',
  'GET /v1/replays',
  'GET /v1/replays/{replay}',
  'GET /v1/sources',
  'GET /v1/sources/{source}',
  'POST /v1/dead-letters/summary',
  'POST /v1/replays/preview',
  'POST /v1/replays',
  'POST /v1/replays/{replay}/stop',
  'POST /v1/replays/{replay}/resume',
  'POST /v1/destinations/{destination}/retry-now',
  'POST /v1/destinations/{destination}/test',
  'PATCH /v1/destinations/{destination}',
  'POST /v1/destinations/{destination}/rotate',
  'POST /v1/destinations/{destination}/rotate/end',
])

test.each(everyone)('a customer with a link learns nothing of others by $what', async (route) => {
  if (route.call === 'sign_out' || route.isStream === true) return
  const origin = `http://127.0.0.1:${tenants.admin.adminPort}`
  const ask = async ({ path, body }: Request) =>
    tenants.call(route.method, path, {
      token: '',
      body,
      headers: { cookie, origin, 'if-match': versions['globex.crm'] ?? '' },
    })
  const ofForeign = await ask(foreign(route))
  expect(told(ofForeign)).toBe(told(await ask(nobody(route))))
  expect(told(ofForeign)).not.toMatch(/globex|ours|read-er/i)
  if (!openToLinks.has(route.what)) expect(ofForeign.status).toBe(403)
})

test('a token that was revoked, or has ended, is refused by each route at once, on connections that are open', async () => {
  const { adminPort } = tenants.admin
  const make = async (name: string, more: object = {}) =>
    tenants.token({ name, right: 'admin', scope: 'all', ...more })
  const revoked = await make('revoked')
  const open = everyone.flatMap((route) =>
    ['revoked', 'ended'].map((name) => ({ route, name, connection: new OpenConnection(adminPort) })),
  )
  try {
    await Promise.all(
      open.map(async ({ connection }) =>
        expect(await connection.send('GET', '/v1/health', revoked)).toEqual([200, false]),
      ),
    )
    // Long enough that it is made before it ends, on a busy machine too.
    const endsAtMs = Date.now() + 10_000
    const ended = await make('ended', { expiresAt: new Date(endsAtMs).toISOString() })
    expect((await tenants.call('DELETE', '/v1/tokens/revoked')).status).toBe(200)
    await until('the other one has ended', () => Date.now() > endsAtMs)
    for (const { route, name, connection } of open) {
      const { path, body } = foreign(route)
      const token = name === 'revoked' ? revoked : ended
      expect([name, await connection.send(route.method, path, token, body)]).toEqual([name, [401, true]])
    }
  } finally {
    for (const { connection } of open) connection.close()
  }
})

const idsIn = (answer: Answer, list: string, field: string): unknown[] =>
  Object(answer.json[list]).map((one: Record<string, unknown>) => one[field])

test('lists have only what is of the customer, page by page', async () => {
  const { call } = tenants
  const token = acme.admin
  expect(idsIn(await call('GET', '/v1/destinations', { token }), 'destinations', 'id')).toEqual([
    'acme.crm',
    'acme.erp',
  ])
  const paged = await call('GET', '/v1/destinations?limit=1&after=acme.crm', { token })
  expect([idsIn(paged, 'destinations', 'id'), paged.json['next']]).toEqual([['acme.erp'], null])
  // The page begins at a foreign id, which tells nothing.
  expect(
    idsIn(await call('GET', '/v1/destinations?after=globex.crm', { token }), 'destinations', 'id'),
  ).toEqual([])
  const ofShop = await call('GET', '/v1/destinations?source=shop', { token })
  expect(idsIn(ofShop, 'destinations', 'id')).toEqual(['acme.crm'])
  const ofForeign = await call('GET', '/v1/destinations?source=globex-shop', { token })
  expect(ofForeign).toMatchObject({ status: 200, json: { destinations: [] } })

  const sources = await call('GET', '/v1/sources', { token })
  expect(sources.json['sources']).toMatchObject([{ id: 'acme-shop', destinations: 2 }])
  expect((await call('GET', '/v1/sources/acme-shop', { token })).status).toBe(200)
  expect((await call('GET', '/v1/sources/shop', { token })).status).toBe(404)
  const paused = await call('GET', '/v1/paused-destinations', { token })
  expect(idsIn(paused, 'destinations', 'destination')).toEqual(['acme.erp'])
  const listed = await call('GET', '/v1/replays', { token })
  expect(idsIn(listed, 'replays', 'id')).toEqual([replays.acme])
  expect(Object(listed.json['replays'])[0]).toMatchObject({ owner: null, read: { of: 100 } })
  // A cursor of another's list is a place, and nothing more.
  const after = await call('GET', `/v1/replays?cursor=9999999999999.${replays.globex}`, { token })
  expect(idsIn(after, 'replays', 'id')).toEqual([replays.acme])
  expect(idsIn(await call('GET', '/v1/tokens', { token }), 'tokens', 'name')).toEqual([
    'acme-admin',
    'acme-operate',
    'acme-read',
  ])
  for (const path of ['/v1/destinations', '/v1/replays'])
    expect(JSON.stringify((await call('GET', path, { token: ofList })).json)).not.toContain('acme.erp')
})

test('the delivery log is searched, counted and shown within the scope', async () => {
  const { call } = tenants
  const token = acme.read
  const search = async (body: object) => call('POST', '/v1/log/search', { token, body })
  expect(new Set(idsIn(await search({}), 'records', 'destination'))).toEqual(new Set(['acme.crm']))
  expect((await search({ destination: 'globex.crm' })).json['records']).toEqual([])
  expect((await search({ messageId: 'globex.crm-only' })).json['records']).toEqual([])
  expect(idsIn(await search({ source: 'shop', hook: 'main' }), 'records', 'destination')).toHaveLength(3)
  // The cursor of somebody who sees everything is a place within what this token sees.
  const { json } = await call('POST', '/v1/log/search', { body: { limit: 1 } })
  const after = await search({ from: json['from'], cursor: json['cursor'] })
  expect(new Set(idsIn(after, 'records', 'destination'))).toEqual(new Set(['acme.crm']))

  const count = async (body: object) => {
    const minutes: { succeeded: number; failed: number }[] = Object(
      (await call('POST', '/v1/log/stats', { token, body })).json['minutes'],
    )
    return minutes.reduce((sum, { succeeded, failed }) => sum + succeeded + failed, 0)
  }
  expect(await count({})).toBe(3)
  expect(await count({ destination: 'globex.crm' })).toBe(0)
  const shown = await call('GET', '/v1/log/messages/of-both', { token })
  expect(idsIn(shown, 'deliveries', 'destination')).toEqual(['acme.crm'])
  expect((await call('GET', '/v1/log/messages/of-both')).json['deliveries']).toHaveLength(2)
})

test('a replay needs a destination of the customer, and no other field reaches beyond it', async () => {
  const { call } = tenants
  const token = acme.operate
  const ask = async (selection: object, path = '/v1/replays/preview') =>
    call('POST', path, {
      token,
      body: { selection: { of: 'dead-letters', ...selection }, all: true, again: true },
    })
  expect(await ask({})).toMatchObject({ status: 400 })
  expect(await ask({ messageId: 'acme.crm-a' }, '/v1/replays')).toMatchObject({ status: 400 })
  expect(await ask({ destination: 'acme.crm' })).toMatchObject({
    status: 200,
    json: { counted: { records: 2 } },
  })
  expect(await ask({ destination: 'acme.crm', messageId: 'globex.crm-a' })).toMatchObject({
    json: { counted: { records: 0, leftOut: {} } },
  })
  for (const id of [replays.globex, replays.all])
    for (const wish of ['stop', 'resume'])
      expect((await call('POST', `/v1/replays/${id}/${wish}`, { token })).status).toBe(404)
  const { json } = await call('GET', `/v1/replays/${replays.all}`)
  expect(json['state']).not.toBe('stopped')
  expect((await call('POST', `/v1/replays/${replays.acme}/stop`, { token })).json['state']).toBe('stopped')
  const sources = ['globex-shop', 'xxxxxx-shop'].map((source) =>
    ask({ of: 'events', destination: 'acme.crm', source }),
  )
  const [one, other] = await Promise.all(sources)
  expect(one?.status).toBe(400)
  expect(one?.text.replaceAll('globex', 'xxxxxx')).toBe(other?.text)
})

test('what is done to many is done to those of the customer only, and a label is no way out', async () => {
  const { call } = tenants
  const bulk = async (order: object, token = acme.admin) =>
    call('POST', '/v1/destinations/bulk', { token, body: { do: 'pause', dryRun: true, ...order } })
  const all = await bulk({ selection: { search: '.' } })
  expect(all).toMatchObject({ status: 200, json: { destinations: ['acme.crm', 'acme.erp'] } })
  const byId = await bulk({ selection: { destinations: ['globex.crm', 'xxxxxx.crm', 'acme.crm'] } })
  expect(byId.json).toMatchObject({
    selected: 1,
    destinations: ['acme.crm'],
    unknown: ['globex.crm', 'xxxxxx.crm'],
  })
  expect((await bulk({ selection: { label: 'tenant=globex' } })).json).toMatchObject({ selected: 0 })
  const moved = await bulk({ selection: { search: '.' }, do: 'label', labels: { tenant: 'globex' } })
  expect(moved.status).toBe(422)
  expect((await bulk({ selection: { search: '.' } }, acme.operate)).status).toBe(403)
})

test('the audit trail has what concerns the destinations of the customer, and who did it', async () => {
  const { call } = tenants
  const { headers } = await call('GET', '/v1/destinations/acme.erp')
  const body = { name: 'ERP' }
  await call('PATCH', '/v1/destinations/acme.erp', {
    body,
    headers: { 'if-match': headers.get('etag') ?? '' },
  })
  await call('POST', '/v1/log/search', { token: acme.read, body: { user: 'somebody' } })
  const own = await call('GET', '/v1/audit', { token: acme.admin })
  const entries: { action: string; destination: string | null; replay: string | null }[] = Object(
    own.json['entries'],
  )
  expect(entries.length).toBeGreaterThanOrEqual(2)
  for (const { destination, replay } of entries)
    expect(destination?.startsWith('acme.') === true || replay === replays.acme).toBe(true)
  expect(own.text).not.toContain('globex')
  expect(
    (await call('GET', `/v1/audit?replay=${replays.globex}`, { token: acme.admin })).json['entries'],
  ).toEqual([])
  const whole = await call('GET', '/v1/audit?limit=1000')
  expect(whole.text).toContain('+acme-admin admin, tenant=acme, until ')
})

test('a change takes no destination out of a scope, and steals none', async () => {
  const { call } = tenants
  const token = acme.admin
  const path = '/v1/destinations/acme.crm'
  const etag = async (at = path) => (await call('GET', at)).headers.get('etag') ?? ''
  const shown = Object((await call('GET', path, { token })).json['destination'])
  const patch = async (body: object, by = token) =>
    call('PATCH', path, { token: by, body, headers: { 'if-match': await etag() } })
  for (const labels of [null, { tenant: null }, { tenant: 'globex' }, { team: 'x' }, 'acme', []])
    expect([await patch({ labels }), labels]).toMatchObject([{ status: 422 }, labels])
  expect(await patch({ labels: { tenant: 'globex' } }, ofList)).toMatchObject({ status: 422 })
  for (const sources of [['shop', 'globex-shop'], ['xxxxxx-shop']])
    expect(await patch({ sources })).toMatchObject({ status: 422 })
  expect(await patch({ sources: ['acme-shop'] })).toMatchObject({ status: 200 })
  // It was connected to this source, which is no source of the customer.
  expect(await patch({ sources: ['acme-shop', 'shop'] })).toMatchObject({ status: 422 })
  const put = await call('PUT', path, {
    token,
    body: { ...shown, sources: ['acme-shop'], labels: undefined },
    headers: { 'if-match': await etag() },
  })
  expect(put.status).toBe(422)
  expect((await patch({ name: 'Own' }, ofList)).status).toBe(200)

  // A foreign one is not changed by its own version either.
  const version = await etag('/v1/destinations/globex.crm')
  for (const [method, body] of [
    ['PUT', { ...shown, labels: { tenant: 'acme' } }],
    ['PATCH', { labels: { tenant: 'acme' } }],
    ['DELETE', undefined],
  ] as const)
    expect(
      (await call(method, '/v1/destinations/globex.crm', { token, body, headers: { 'if-match': version } }))
        .status,
    ).toBe(404)
  expect(await etag('/v1/destinations/globex.crm')).toBe(version)
})

test('a destination is made with the label of its maker, under ids that tell nothing of others', async () => {
  const { call } = tenants
  const token = acme.admin
  const made = {
    labels: { tenant: 'acme' },
    sources: ['acme-shop'],
    hooks: [{ url: 'https://acme.example/n' }],
  }
  const put = async (id: string, more: object = {}, by = token) =>
    call('PUT', `/v1/destinations/${id}`, {
      token: by,
      body: { ...made, ...more },
      headers: { 'if-none-match': '*' },
    })
  for (const labels of [undefined, {}, { tenant: 'globex' }, { tenant: 'acme', team: 'x' }])
    expect((await put('acme.new', { labels })).status).toBe(422)
  expect((await put('acme.new', { sources: ['globex-shop'] })).status).toBe(422)
  for (const id of ['new', 'globex.new', 'globex.crm', 'acme', 'acmex.new'])
    expect([id, (await put(id)).status]).toEqual([id, 403])
  expect((await put('acme.new', {}, ofList)).status).toBe(403)
  expect((await put('acme.new')).status).toBe(200)
  expect((await call('GET', '/v1/destinations/acme.new', { token })).status).toBe(200)
  expect((await put('acme.new')).status).toBe(412)

  // Its label is changed by somebody who may: from then on it does not exist for the former customer.
  const path = '/v1/destinations/acme.new'
  const before = (await call('GET', path)).headers.get('etag') ?? ''
  const moved = { body: { labels: { tenant: 'globex' }, sources: ['shop'] }, headers: { 'if-match': before } }
  expect((await call('PATCH', path, moved)).status).toBe(200)
  for (const headers of [
    { 'if-match': before },
    { 'if-match': (await call('GET', path)).headers.get('etag') ?? '' },
  ])
    expect((await call('PATCH', path, { token, body: { name: 'x' }, headers })).status).toBe(404)
  const taken = await put('acme.new')
  expect([taken.status, taken.headers.get('etag'), taken.json['detail']]).toEqual([
    412,
    null,
    'The id "acme.new" is taken: choose another one.',
  ])
  await until('the routes of deeds know it too', async () => {
    const { status } = await call('POST', `${path}/drop`, { token, body: { waiting: true, dryRun: true } })
    return status === 404
  })
})

test('nobody makes a token that may do more, or for longer, than the own', async () => {
  const { call } = tenants
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString()
  const scope = { label: 'tenant=acme' }
  const maker = await tenants.token({ name: 'acme-boss', right: 'admin', scope, expiresAt: inAnHour })
  const make = async (order: object, token = maker) =>
    call('POST', '/v1/tokens', { token, body: { name: 'acme-boss.x', right: 'read', scope, ...order } })
  for (const order of [
    { scope: { label: 'tenant=globex' } },
    { scope: { label: 'team=acme' } },
    { expiresAt: null },
    { expiresAt: new Date(Date.now() + 7_200_000).toISOString() },
    { name: 'other' },
    { name: 'acme-boss' },
  ])
    expect([order, (await make(order)).status]).toEqual([order, 403])
  const foreignIds = ['globex.crm', 'xxxxxx.crm'].map((id) =>
    make({ scope: { destinations: ['acme.crm', id] } }),
  )
  const [one, other] = await Promise.all(foreignIds)
  expect(one?.status).toBe(404)
  expect(one?.text.replaceAll('globex', 'xxxxxx')).toBe(other?.text)
  expect((await make({}, acme.operate)).status).toBe(403)
  expect((await make({ expiresAt: '2020-01-01T00:00:00Z' })).status).toBe(400)

  // What the scope leaves open is as in the maker's, and so is the end.
  const child = await make({ scope: { destinations: ['acme.crm'] }, right: 'admin' })
  expect(child).toMatchObject({
    status: 201,
    json: {
      scope: { label: 'tenant=acme', destinations: ['acme.crm'] },
      expiresAt: inAnHour,
      createdBy: 'acme-boss',
    },
  })
  const grandchild = await make(
    { name: 'acme-boss.x.y', scope: { destinations: ['acme.erp'] } },
    String(child.json['token']),
  )
  expect(grandchild.status).toBe(403)
  expect((await make({ name: 'acme-boss.all', scope: 'all' })).json).toMatchObject({ scope })
  expect((await make({})).status).toBe(409)
  for (const name of ['globex-admin', 'admin-er', 'nobody'])
    expect((await call('DELETE', `/v1/tokens/${name}`, { token: maker })).status).toBe(404)
  expect((await call('DELETE', '/v1/tokens/admin-er')).status).toBe(409)
  expect((await call('DELETE', '/v1/tokens/acme-boss.x', { token: maker })).status).toBe(200)
  expect((await call('GET', '/v1/health', { token: String(child.json['token']) })).status).toBe(401)
})

test('tokens are listed with their end and last use, without a secret, which nothing else has either', async () => {
  const secret = await tenants.token({ name: 'seen', right: 'read', scope: 'all' })
  const listed = async () => {
    const { json, text } = await tenants.call('GET', '/v1/tokens')
    expect(text).not.toMatch(/sluice_[A-Za-z0-9_-]{43}|[0-9a-f]{64}/)
    return Object(json['tokens']).find(({ name }: { name: string }) => name === 'seen')
  }
  const before = await listed()
  expect(before).toMatchObject({
    right: 'read',
    scope: 'all',
    origin: 'topic',
    lastUsedAt: null,
    hasEnded: false,
  })
  const lasts = Date.parse(before.expiresAt) - Date.parse(before.createdAt)
  expect(Math.round(lasts / 86_400_000)).toBe(90)
  await tenants.call('GET', '/v1/health', { token: secret })
  expect(Date.parse((await listed()).lastUsedAt)).toBeGreaterThan(Date.parse(before.createdAt) - 1)
})

test('commands make and revoke tokens, and another process takes them within seconds', async () => {
  const { scene, call } = tenants
  const other = await startSluice(scene.variables, { role: 'admin' })
  const statusOf = async (token: string) => (await call('GET', '/v1/health', { token }, other)).status
  try {
    const args = ['--name', 'night', '--right', 'read', '--label', 'tenant=globex', '--expires', '12h']
    const { code, stdout } = await runToEnd(['tokens', 'create', ...args], scene.variables)
    expect(code).toBe(0)
    const token = stdout.trim()
    await until('it works', async () => (await statusOf(token)) === 200)
    const seen = idsIn(await call('GET', '/v1/destinations', { token }, other), 'destinations', 'id')
    expect(seen).toContain('globex.crm')
    expect(seen.join(' ')).not.toContain('acme.crm')
    expect((await runToEnd(['tokens', 'rm', 'night'], scene.variables)).code).toBe(0)
    await until('it is refused', async () => (await statusOf(token)) === 401)
  } finally {
    await other.kill()
  }
})

test('an export has no tokens, and an import leaves them, also one that writes all anew', async () => {
  const { scene, call } = tenants
  const exported = await runToEnd(['catalog', 'export', '--json'], scene.variables)
  expect(exported.stdout).not.toContain('acme-admin')
  scene.catalog.rewrite(JSON.parse(exported.stdout))
  expect((await runToEnd(['catalog', 'import', scene.catalog.path, '--repair'], scene.variables)).code).toBe(
    0,
  )
  expect((await call('GET', '/v1/health', { token: acme.admin })).status).toBe(200)
  const { stdout } = await runToEnd(['tokens', 'list'], scene.variables)
  expect(stdout).toMatch(/^acme-admin +admin +yes +tenant=acme +ends at \S+ +admin-er$/m)
})
