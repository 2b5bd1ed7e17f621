import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AdminRoute } from '../../../src/admin/admin-route.ts'
import { adminRoutes } from '../../../src/admin/routes.ts'
import { urlsDigestOf } from '../../../src/catalog/auto-pause.ts'
import { withAdmin } from '../../../src/kafka/cluster/with-admin.ts'
import { type Scene, setScene } from '../../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../../support/admin.ts'
import { letterOf, writeLetters } from '../../support/dead-letters.ts'
import { writePause } from '../../support/pauses.ts'
import { answer, neverAnswer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { otherProgram } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { applyTopics, runToEnd, type SluiceProcess, startSluice } from '../../support/worker-process.ts'

let scene: Scene
let tokens: AdminTokens
let admin: SluiceProcess
let index: SluiceProcess
let folder: string
let receiver: Receiver

beforeAll(async () => {
  receiver = await startReceiver({ '/good': answer(200), '/silent': neverAnswer })
  tokens = await makeTokens()
  folder = mkdtempSync(join(tmpdir(), 'sluice-index-'))
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [
        { id: 'erp', sources: ['shop'], hooks: [{ url: 'https://example.com/' }] },
        { id: 'away', state: 'off', sources: ['shop'], hooks: [{ url: 'https://example.com/' }] },
        {
          id: 'tested',
          sources: ['shop'],
          hooks: [
            { id: 'good', url: `${receiver.origin}/good` },
            { id: 'silent', url: `${receiver.origin}/silent` },
          ],
        },
      ],
    },
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_INDEX_FOLDER: folder,
      SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.1',
      SLUICE_NOTICES_AUTO_PAUSE: '120h',
    },
  })
  const letters = ['a', 'b', 'c'].map((messageId) =>
    letterOf({ destinationId: 'erp', messageId, atMs: Date.now() }, scene.prefix),
  )
  await writeLetters(`${scene.prefix}dead-letters`, letters)
  index = await startSluice(scene.variables, { role: 'log serve' })
  admin = await startSluice(scene.variables, { role: 'admin' })
})

afterAll(async () => {
  await Promise.all([admin, index].map((one) => one?.kill()))
  scene.close()
  tokens.remove()
  await receiver.stop()
  rmSync(folder, { recursive: true, force: true })
})

type Problem = { type: string; title: string; status: number; detail: string }

function readJson(text: string): Record<string, unknown> & Problem {
  return JSON.parse(text)
}

async function call(
  method: string,
  path: string,
  { token, body, headers = {} }: { token?: string; body?: unknown; headers?: Record<string, string> } = {},
) {
  const response = await fetch(`http://127.0.0.1:${admin.adminPort}${path}`, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    headers: response.headers,
    json: readJson(text),
  }
}

/** Returns the path and the body of a request to a route, with the examples of the document. */
function exampleOf({ path, params = {}, body }: AdminRoute): { path: string; body?: unknown } {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => params[name]?.example ?? '')
  return { path: filled, ...(body !== undefined && { body: body.example }) }
}

/** For each access level, the highest level that is too low. `undefined`: a request without a token. */
const below = { read: undefined, operate: 'read', admin: 'operate' } as const

test('the document has every route, with an example of each answer', async () => {
  const { json } = await call('GET', '/openapi.json')
  const paths = json['paths']
  const documented = Object.entries(Object(paths)).flatMap(([path, operations]) =>
    Object.keys(Object(operations)).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(documented.sort()).toEqual(adminRoutes.map(({ method, path }) => `${method} ${path}`).sort())
  expect(JSON.stringify(paths)).toContain('"example"')
})

/** Signing in needs no token (console.test.ts), and a stream doesn't end (live.test.ts). */
const walked = adminRoutes.filter(({ isOpen, isStream }) => isOpen !== true && isStream !== true)

describe.each(walked)('$method $path', (route) => {
  test('refuses without a token, and with one that nobody made', async () => {
    const { path, ...rest } = exampleOf(route)
    for (const token of [undefined, '', 'sluice_wrong', `${tokens.admin}x`]) {
      const refused = await call(route.method, path, { ...rest, ...(token !== undefined && { token }) })
      expect(refused).toMatchObject({
        status: 401,
        type: 'application/problem+json; charset=utf-8',
        json: { status: 401 },
      })
      expect(refused.headers.get('www-authenticate')).toBe('Bearer')
    }
  })

  test('refuses with too few rights, and does it with enough', async () => {
    const { path, ...rest } = exampleOf(route)
    const right = below[route.right]
    if (right !== undefined) {
      const refused = await call(route.method, path, { ...rest, token: tokens[right] })
      expect(refused.json).toMatchObject({ status: 403, type: '/problems/not-allowed' })
      expect(refused.json.detail).toContain(route.right)
    }
    // A token with the right `read` sees no content, if nobody has said that it does.
    if (route.showsContent === true) {
      const blind = await call(route.method, path, { ...rest, token: tokens.read })
      expect(blind.json).toMatchObject({ status: 403, type: '/problems/not-allowed' })
    }
    // Without a scope, a token needs the right `admin` to make and end links.
    const isOfLinks = route.path.startsWith('/v1/links') && route.method !== 'GET'
    const enough = isOfLinks ? 'admin' : route.showsContent === true ? 'operate' : route.right
    const allowed = await call(route.method, path, { ...rest, token: tokens[enough] })
    expect([200, 201, 404, 409]).toContain(allowed.status)
  })
})

test('replays are counted, asked for, listed, stopped and resumed, and who did it is told', async () => {
  const token = tokens.operate
  const selection = { of: 'dead-letters', destination: 'erp' }
  const preview = await call('POST', '/v1/replays/preview', { token, body: { selection } })
  const groups = [{ destination: 'erp', reason: 'expired', records: 3 }]
  const counts = { counted: { records: 3, leftOut: {} }, isComplete: true }
  expect(preview.json).toMatchObject({ selection, ...counts, groups })
  const body = { selection, perSecond: 5 }
  expect((await call('POST', '/v1/replays/preview', { token, body })).json).toEqual(preview.json)
  const made = await call('POST', '/v1/replays', { token, body })
  expect(made).toMatchObject({
    status: 201,
    json: { state: 'waiting', selection, perSecond: 5, createdBy: 'operate-er', counted: { records: 3 } },
  })
  const path = made.headers.get('location') ?? ''
  expect((await call('GET', path, { token: tokens.read })).json).toMatchObject({
    state: 'waiting',
    sent: { records: 0 },
  })
  expect((await call('POST', `${path}/stop`, { token })).json).toMatchObject({ state: 'stopped' })
  expect((await call('GET', '/v1/replays?state=stopped', { token })).json['replays']).toHaveLength(1)
  expect((await call('GET', '/v1/replays?state=done&limit=5', { token })).json['replays']).toHaveLength(0)
  expect((await call('POST', `${path}/resume`, { token })).json).toMatchObject({ state: 'waiting' })
  const id = path.split('/').at(-1)
  const audit = await call('GET', `/v1/audit?replay=${id}`, { token: tokens.admin })
  expect(audit.json['entries']).toMatchObject([
    { by: 'operate-er', action: 'resumed', replay: id },
    { by: 'operate-er', action: 'stopped', replay: id },
    { by: 'operate-er', action: 'created', replay: id, records: 3 },
  ])
})

test('what a replay sends is left out of the next, unless it is asked for again', async () => {
  const { operate: token } = tokens
  const selection = { of: 'dead-letters', source: 'shop', reason: 'expired' }
  const previewed = async (body: object) =>
    (await call('POST', '/v1/replays/preview', { token, body: { selection, ...body } })).json
  const leftOut = { already_replayed: 3 }
  expect(await previewed({})).toMatchObject({ counted: { records: 0, leftOut }, groups: [], again: false })
  const refused = await call('POST', '/v1/replays', { token, body: { selection } })
  expect(refused).toMatchObject({ status: 409, json: { type: '/problems/conflict' } })
  expect(refused.json.detail).toContain('"again": true')
  expect(await previewed({ again: true })).toMatchObject({
    counted: { records: 3, leftOut: {} },
    again: true,
  })
  const { stdout } = await runToEnd(['replay', 'dead-letters', '--all', '--json'], scene.variables)
  expect(JSON.parse(stdout)).toMatchObject({ counted: { records: 0, leftOut }, groups: [] })
  const again = await runToEnd(['replay', 'dead-letters', '--again', '--dry-run'], scene.variables)
  expect(again.stdout).toMatch(/\nfound +3 records, .*\n +3 +[\d.]+ \S+ +to erp +expired\nnothing sent\n$/)
})

async function auditOf(
  query: string,
): Promise<{ entries: Record<string, unknown>[]; cursor: string | null }> {
  const { json } = await call('GET', `/v1/audit?${query}`, { token: tokens.admin })
  const { cursor } = json
  return { entries: Object(json['entries']), cursor: typeof cursor === 'string' ? cursor : null }
}

test('who stops and resumes a replay again and again does not push others out of the audit trail', async () => {
  const { json } = await call('GET', '/v1/replays', { token: tokens.read })
  const [first]: { id: string }[] = Object(json['replays'])
  const id = first?.id ?? ''
  const since = new Date().toISOString()
  for (let time = 1; time <= 10; time++)
    for (const wish of ['stop', 'resume'])
      await call('POST', `/v1/replays/${id}/${wish}`, { token: tokens.operate })
  const { entries } = await auditOf(`from=${since}`)
  const ofReplay = entries.filter(({ replay }) => replay === id)
  expect(ofReplay.map(({ action, by }) => [action, by])).toEqual([
    ['resumed', 'operate-er'],
    ['stopped', 'operate-er'],
  ])
  for (const { count } of ofReplay) expect(count).toBeGreaterThanOrEqual(10)
  expect((await auditOf(`to=2020-01-01`)).entries).toEqual([])
  expect(await call('GET', '/v1/audit?from=yesterday..', { token: tokens.admin })).toMatchObject({
    status: 400,
  })
})

test('pages of the audit trail have all entries, down to the tokens that were seen at the start', async () => {
  const found: Record<string, unknown>[] = []
  let next: string | null = ''
  while (next !== null) {
    const { entries, cursor } = await auditOf(`limit=1${next === '' ? '' : `&cursor=${next}`}`)
    expect(entries.length).toBeLessThanOrEqual(1)
    found.push(...entries)
    next = cursor
  }
  const whole = await auditOf('limit=1000')
  expect(found).toEqual(whole.entries)
  expect(whole.cursor).toBeNull()
  expect(found.at(-1)).toMatchObject({ by: 'the token file', action: 'tokens_changed' })
  expect(found.at(-1)?.['detail']).toMatch(/^first seen: \+read-er read [0-9a-f]{8}, \+operate-er operate /)
})

async function listReplays(query: string): Promise<Record<string, unknown>> {
  return (await call('GET', `/v1/replays?${query}`, { token: tokens.read })).json
}

test('pages of the list of replays have all of them', async () => {
  const selection = { of: 'dead-letters', destination: 'erp' }
  for (let time = 1; time <= 2; time++)
    await call('POST', '/v1/replays', { token: tokens.operate, body: { selection, again: true } })
  const whole = await listReplays('limit=1000')
  const found: unknown[] = []
  let query = 'limit=1'
  while (query !== '') {
    const { replays, cursor } = await listReplays(query)
    found.push(...Object(replays))
    query = typeof cursor === 'string' ? `limit=1&cursor=${cursor}` : ''
  }
  expect(whole['cursor']).toBeNull()
  expect(found).toHaveLength(3)
  expect(found).toEqual(whole['replays'])
})

test('a replay that is requested again with the same key is created once', async () => {
  const before = Object((await listReplays('limit=1000'))['replays']).length
  const selection = { of: 'dead-letters', destination: 'erp' }
  const body = { selection, again: true }
  const headers = { 'idempotency-key': 'key-of-the-replay' }
  const request = (sent: object) =>
    call('POST', '/v1/replays', { token: tokens.operate, body: sent, headers })
  const answers = [...(await Promise.all([request(body), request(body)])), await request(body)]
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
  expect(new Set(answers.map(({ json }) => json['id'])).size).toBe(1)
  expect(new Set(answers.map((one) => one.headers.get('location'))).size).toBe(1)
  expect(await request({ ...body, perSecond: 7 })).toMatchObject({
    status: 422,
    json: { type: '/problems/other-request' },
  })
  expect(Object((await listReplays('limit=1000'))['replays'])).toHaveLength(before + 1)
})

async function counted(range: object) {
  const body = { selection: { of: 'dead-letters', destination: 'erp', ...range }, again: true }
  return (await call('POST', '/v1/replays/preview', { token: tokens.operate, body })).json
}

test.each(['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.998Z', '0001-01-01T00:00:00Z'])(
  'a replay from %s, before Kafka counts time, has all records, and one up to then has none',
  async (time) => {
    expect(await counted({ from: time })).toMatchObject({ counted: { records: 3 }, isComplete: true })
    expect(await counted({ to: time })).toMatchObject({ counted: { records: 0 }, isComplete: true })
  },
)

test('destinations that Sluice has paused are listed and resumed, and who did it is told', async () => {
  const hook = { id: '', url: 'https://example.com/', origin: '', path: '', headers: [] }
  const urls = urlsDigestOf({ hooks: [hook] })
  const { sinceMs, atMs } = await writePause('erp', { prefix: scene.prefix, urls })
  const readAtMs = Date.now()
  const paused = {
    destination: 'erp',
    since: new Date(sinceMs).toISOString(),
    pausedAt: new Date(atMs).toISOString(),
    lastOutcome: 'timeout',
    cause: 'failing',
  }
  const list = async () => (await call('GET', '/v1/paused-destinations', { token: tokens.read })).json
  expect(await list()).toEqual({ destinations: [paused] })
  const statesOf = async (query: string): Promise<unknown[]> => {
    const { json } = await call('GET', `/v1/destinations${query}`, { token: tokens.read })
    const listed: { id: string; state: string }[] = Object(json['destinations'])
    expect(json['areAutoPausesKnown']).toBe(true)
    return listed.map(({ id, state }) => `${id} ${state}`)
  }
  // The list is answered from memory, and says since when it is.
  await until('it has read the pause', async () => {
    const { json } = await call('GET', '/v1/destinations?limit=1', { token: tokens.read })
    return Date.parse(String(json['asOf'])) > readAtMs
  })
  expect(await statesOf('')).toEqual(['away off', 'erp auto_paused', 'tested on'])
  expect(await statesOf('?state=auto_paused')).toEqual(['erp auto_paused'])
  const { stdout } = await runToEnd(['destinations', 'list', '--source', 'shop'], scene.variables)
  expect(stdout).toMatch(
    /^destination +state +condition .*\naway +off +off .*\nerp +auto_paused +auto_paused +\? +\? +https:\/\/example.com +shop\n/,
  )
  const path = '/v1/destinations/erp/resume'
  const resumed = await call('POST', path, { token: tokens.operate })
  expect(resumed).toMatchObject({
    status: 200,
    json: { ...paused, resumedBy: 'operate-er', workersKnowWithinSeconds: 2 },
  })
  expect(await list()).toEqual({ destinations: [] })
  expect(await statesOf('?after=away&limit=1')).toEqual(['erp on'])
  expect(await statesOf('?destination=erp')).toEqual(['erp on'])
  expect(await call('POST', path, { token: tokens.operate })).toMatchObject({ status: 409 })
  const audit = await call('GET', '/v1/audit?limit=1', { token: tokens.admin })
  expect(audit.json['entries']).toMatchObject([
    { by: 'operate-er', action: 'destination_resumed', destination: 'erp', replay: null },
  ])
})

test('messages of a destination are tried now by an order for the workers, with a preview and an audit trail', async () => {
  const path = '/v1/destinations/tested/retry-now'
  const preview = { destination: 'tested', messageId: 'm1', isPreview: true, waiting: null }
  const given = { token: tokens.operate, body: { messageId: 'm1', dryRun: true } }
  expect(await call('POST', path, given)).toMatchObject({ status: 200, json: preview })
  expect(await call('POST', path, { ...given, token: tokens.read })).toMatchObject({ status: 403 })
  for (const [id, status] of [
    ['nobody', 404],
    ['away', 409],
  ])
    expect(await call('POST', `/v1/destinations/${id}/retry-now`, given)).toMatchObject({ status })
  const asked = await call('POST', path, { token: tokens.operate, body: {} })
  const json = { destination: 'tested', messageId: null, isPreview: false, askedBy: 'operate-er' }
  expect(asked).toMatchObject({ status: 200, json: { ...json, workersKnowWithinSeconds: 2 } })
  const audit = await call('GET', '/v1/audit?limit=1', { token: tokens.admin })
  expect(audit.json['entries']).toMatchObject([
    { by: 'operate-er', action: 'destination_retried', destination: 'tested', replay: null },
  ])
})

test('what waits for a destination is given up by an order for the workers, with a preview and an audit trail', async () => {
  const path = '/v1/destinations/tested/drop'
  // No worker runs, so nobody knows how many wait.
  const preview = {
    destination: 'tested',
    isPreview: true,
    waiting: null,
    onRetryTopics: null,
    onRetryTopicsAtMost: null,
  }
  const given = { token: tokens.operate, body: { waiting: true, dryRun: true } }
  expect(await call('POST', path, given)).toMatchObject({ status: 200, json: preview })
  expect(await call('POST', path, { ...given, token: tokens.read })).toMatchObject({ status: 403 })
  expect(await call('POST', path, { ...given, body: {} })).toMatchObject({ status: 400 })
  expect(await call('POST', '/v1/destinations/nobody/drop', given)).toMatchObject({ status: 404 })
  const asked = await call('POST', path, { token: tokens.operate, body: { waiting: true } })
  const json = { destination: 'tested', isPreview: false, askedBy: 'operate-er' }
  expect(asked).toMatchObject({ status: 200, json: { ...json, workersKnowWithinSeconds: 2 } })
  const audit = await call('GET', '/v1/audit?limit=1', { token: tokens.admin })
  expect(audit.json['entries']).toMatchObject([
    { by: 'operate-er', action: 'destination_dropped', destination: 'tested', replay: null },
  ])
})

test('a destination is tested with a message of one’s own, and the answer says what its URL answered', async () => {
  const body = { hook: 'good', message: { type: 'identify', userId: 'u1', messageId: 'm1' } }
  const tested = await call('POST', '/v1/destinations/tested/test', { token: tokens.operate, body })
  expect(tested).toMatchObject({
    status: 200,
    json: {
      destination: 'tested',
      messageId: 'm1',
      isAccepted: true,
      verdict: null,
      hooks: [{ hook: 'good', verdict: 'delivered', status: 200, answer: null, advice: null }],
      notes: [],
    },
  })
  const [request] = receiver.requestsTo('/good')
  expect(request?.headers['x-sluice-test']).toBe('true')
  expect(JSON.parse(String(request?.body))).toMatchObject({ version: 1, type: 'identify', messageId: 'm1' })
  expect((await auditOf('limit=1')).entries).toMatchObject([
    {
      by: 'operate-er',
      action: 'destination_tested',
      destination: 'tested',
      detail: 'its URL "good"',
    },
  ])
  await until('the log says who tested it', () =>
    admin.log.some(
      ({ msg, messageId, by }) =>
        msg === 'a destination was tested' && messageId === 'm1' && by === 'operate-er',
    ),
  )
})

function testAll() {
  return call('POST', '/v1/destinations/tested/test', { token: tokens.operate, body: {} })
}

test('only some destinations are tested at the same time, and then others again', async () => {
  const all = await Promise.all(Array.from({ length: 6 }, testAll))
  const done = all.filter(({ status }) => status === 200)
  expect(done).toHaveLength(4)
  for (const { json } of done) expect(json).toMatchObject({ isAccepted: false })
  for (const refused of all.filter((one) => !done.includes(one)))
    expect(refused).toMatchObject({ status: 429, json: { type: '/problems/busy' } })
  expect(await testAll()).toMatchObject({ status: 200 })
})

test.each([
  ['POST', '/v1/destinations/nobody/test', {}, 404],
  ['POST', '/v1/destinations/tested/test', { hook: 'nobody' }, 400],
  ['POST', '/v1/destinations/tested/test', { message: { type: 'nothing' } }, 400],
  ['POST', '/v1/destinations/tested/test', { message: 'text' }, 400],
  ['POST', '/v1/destinations/tested/test', { other: 1 }, 400],
  [
    'POST',
    '/v1/destinations/tested/test',
    '{"message":{"type":"track","userId":"u","event":"e","properties":{"a":1e400}}}',
    400,
  ],
  ['POST', '/v1/replays/preview', '{', 400],
  ['POST', '/v1/replays/preview', { selection: { of: 'nothing' } }, 400],
  ['POST', '/v1/replays/preview', { selection: { of: 'events' } }, 400],
  ['POST', '/v1/replays/preview', { selection: { of: 'dead-letters', from: 'yesterday' } }, 400],
  [
    'POST',
    '/v1/replays/preview',
    { selection: { of: 'dead-letters', from: '2026-01-02', to: '2026-01-01' } },
    400,
  ],
  ['POST', '/v1/replays/preview', { selection: { of: 'dead-letters', destination: 'nobody' } }, 400],
  ['POST', '/v1/replays/preview', { selection: { of: 'dead-letters', destination: 'away' } }, 400],
  ['POST', '/v1/replays/preview', { selection: { of: 'dead-letters', other: 1 } }, 400],
  ['POST', '/v1/replays/preview', { of: 'dead-letters' }, 400],
  ['POST', '/v1/replays', { selection: { of: 'dead-letters' } }, 400],
  ['POST', '/v1/replays', { selection: { of: 'events', destination: 'erp' } }, 400],
  ['POST', '/v1/replays', { selection: { of: 'dead-letters' }, perSecond: 0 }, 400],
  ['POST', '/v1/replays', { selection: { of: 'dead-letters', messageId: 'nobody' } }, 409],
  ['POST', '/v1/replays/preview', `"${'x'.repeat(70_000)}"`, 413],
  ['GET', '/v1/replays?limit=0', undefined, 400],
  ['GET', '/v1/destinations?state=broken', undefined, 400],
  ['GET', '/v1/destinations?source=nobody', undefined, 400],
  ['GET', '/v1/replays?limit=5&limit=6', undefined, 400],
  ['GET', '/v1/replays/nobody', undefined, 404],
  ['POST', '/v1/replays/nobody/stop', undefined, 404],
  ['POST', '/v1/destinations/nobody/resume', undefined, 409],
  ['GET', '/v1/nothing', undefined, 404],
  ['DELETE', '/v1/replays', undefined, 404],
  ['GET', '/v1/replays/%ff', undefined, 404],
] as const)(
  '%s %s with %o is refused by a problem that says what to do',
  async (method, path, body, status) => {
    const refused = await call(method, path, { token: tokens.admin, ...(body !== undefined && { body }) })
    expect(refused).toMatchObject({
      status,
      type: 'application/problem+json; charset=utf-8',
      json: { status },
    })
    expect(refused.json.type).toMatch(/^\/problems\/[a-z-]+$/)
    expect(refused.json.detail.length).toBeGreaterThan(20)
  },
)

test('what is no JSON is refused as that', async () => {
  const refused = await call('POST', '/v1/replays', {
    token: tokens.admin,
    body: 'a=b',
    headers: { 'content-type': 'text/plain' },
  })
  expect(refused.json).toMatchObject({ status: 415, type: '/problems/unknown-type' })
})

test('a token that is taken out of the file is refused within seconds, and a broken file changes nothing', async () => {
  const before = readFileSync(tokens.file, 'utf8')
  writeFileSync(tokens.file, 'nonsense')
  await until('that is said', () =>
    admin.log.some(({ msg }) => msg.includes('the tokens read before stay in force')),
  )
  expect((await call('GET', '/v1/health', { token: tokens.read })).status).toBe(200)
  writeFileSync(
    tokens.file,
    before
      .split('\n')
      .filter((line) => !line.includes(' read '))
      .join('\n'),
  )
  await until(
    'it is refused',
    async () => (await call('GET', '/v1/health', { token: tokens.read })).status === 401,
  )
  expect((await call('GET', '/v1/health', { token: tokens.admin })).status).toBe(200)
  await until('the audit trail has it', async () => {
    const { entries } = await auditOf('limit=1')
    return /^-read-er read [0-9a-f]{8}$/.test(String(entries[0]?.['detail']))
  })
  writeFileSync(tokens.file, before)
  await until(
    'it counts again',
    async () => (await call('GET', '/v1/health', { token: tokens.read })).status === 200,
  )
})

test('nothing that it says has a token', async () => {
  const metrics = await admin.metrics()
  const said = JSON.stringify(admin.log) + admin.stderr + metrics
  for (const token of [tokens.read, tokens.operate, tokens.admin]) expect(said).not.toContain(token)
  expect(
    await admin.metric('sluice_admin_requests_total', { call: 'health', status: '401' }),
  ).toBeGreaterThan(0)
})

test.each([
  ['without a file', {}, 'sluice admin token create'],
  [
    'with a file that is not there',
    { SLUICE_ADMIN_TOKENS_FILE: '/nowhere/tokens' },
    '/nowhere/tokens can not be used',
  ],
])('it does not start %s of tokens', async (_how, variables, problem) => {
  const { SLUICE_ADMIN_TOKENS_FILE: _file, ...others } = scene.variables
  const { code, stderr } = await runToEnd(['admin'], { ...others, ...variables })
  expect(code).toBe(1)
  expect(stderr).toContain(problem)
})

test('it is not ready within seconds when one of its topics is gone, and again when it is back', async () => {
  const own = await setScene({
    catalog: { sources: [{ id: 'shop' }], destinations: [] },
    variables: { SLUICE_ADMIN_TOKENS_FILE: tokens.file },
  })
  const other = await startSluice(own.variables, { role: 'admin' })
  const isReady = async (): Promise<boolean> =>
    (await fetch(`http://127.0.0.1:${other.httpPort}/readyz`)).status === 200
  const topic = `${own.prefix}replay-jobs`
  await until('it is ready', isReady)
  await withAdmin(otherProgram(), (kafka) => kafka.deleteTopics({ topics: [topic] }))
  await until('it is not ready, and says why', async () => {
    const probed = await fetch(`http://127.0.0.1:${other.httpPort}/readyz`)
    return probed.status === 503 && (await probed.text()).includes(`${topic} does not exist any more`)
  })
  await applyTopics(own.variables)
  expect(await until('it is ready again', isReady)).toBe(true)
  await other.kill()
  own.close()
})

test('SIGTERM lets it answer what is there, and ends it', async () => {
  const other = await startSluice(scene.variables, { role: 'admin' })
  const body = JSON.stringify({ selection: { of: 'dead-letters' } })
  const socket = connect(other.adminPort, '127.0.0.1')
  let answered = ''
  socket.on('data', (chunk: Buffer) => (answered += chunk.toString()))
  const head = `POST /v1/replays/preview HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${tokens.operate}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`
  socket.write(head + body.slice(0, 5))
  await until('it is being read', () => answered.includes('100 Continue'))
  const ended = other.terminate()
  await until('it is no longer ready', async () => {
    const ready = await fetch(`http://127.0.0.1:${other.httpPort}/readyz`).catch(() => undefined)
    return ready?.status === 503
  })
  socket.write(body.slice(5))
  // A request that is not answered would end with the time for the stop, and without an answer.
  expect((await ended).code).toBe(0)
  await until('the connection is closed', () => socket.closed)
  expect(answered).toContain('HTTP/1.1 200')
  expect(answered.toLowerCase()).toContain('connection: close')
})
