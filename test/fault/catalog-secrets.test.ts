import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { adminRoutes } from '../../src/admin/routes.ts'
import { newSigningKey } from '../../src/catalog/features/signing-keys.ts'
import { listOf, recordOf } from '../../src/catalog/plain-data.ts'
import { Definitions } from '../../src/catalog-log/definitions.ts'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import { keyOf } from '../../src/catalog-log/names.ts'
import { RecordSeals } from '../../src/catalog-log/record.ts'
import { withSecretFields } from '../../src/catalog-log/secret-fields.ts'
import { type Scene, setScene } from '../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../support/admin.ts'
import { catalogKeys } from '../support/catalog-log.ts'
import { readHistory } from '../support/catalog-model.ts'
import { createAuthority } from '../support/certificates.ts'
import { expectNowhere, filesIn, recordsOf, type Said } from '../support/planted.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../support/worker-process.ts'

/**
 * `test/e2e/planted-secrets.test.ts` shows the same for a catalog in a file, and for the texts that make users
 * unknown.
 */

/** Makes a secret with characters that are written otherwise in URLs, forms and JSON. */
function secret(name: string): string {
  return `planted+${name}/"${randomBytes(6).toString('hex')}"=&`
}

const authority = createAuthority('the authority of the test')
const identity = authority.issue({ names: ['127.0.0.1'] })
const client = authority.issue({ names: ['sluice'] })

/** What is planted by its name. Secrets that Sluice makes are added while the test runs. */
const planted: Record<string, string> = {
  sharedSecret: secret('shared'),
  secretOfCommand: secret('command'),
  secretOfVariable: secret('variable'),
  secretOfApply: secret('apply'),
  header: secret('header'),
  username: secret('user'),
  password: secret('password'),
  clientSecret: secret('client'),
  wrongClientSecret: secret('wrong-client'),
  accessToken: `planted-access-token-${randomBytes(8).toString('hex')}`,
  signingKey: newSigningKey(),
  clientKey: client.key.split('\n')[1] ?? '',
  serverKey: `planted-server-key-${randomBytes(6).toString('hex')}`,
  path: `planted-path-${randomBytes(6).toString('hex')}`,
  writeKey: `planted-write-key-${randomBytes(6).toString('hex')}`,
}
const plant = (name: string): string => planted[name] ?? ''

/** The places that may have a planted text, by its name. */
const places: Record<string, string[]> = {}
/** The secrets in force that the endpoint of `crm` says, as its developers would by mistake. */
let saidByCrm = ['sharedSecret']

type Running = {
  readonly scene: Scene
  readonly tokens: AdminTokens
  readonly folder: string
  readonly processes: readonly SluiceProcess[]
  readonly gateway: SluiceProcess
  readonly admin: SluiceProcess
  readonly receiver: Receiver
  readonly said: Said[]
}

/** Starts endpoints that say in their answers what they got, and all roles. */
async function start(): Promise<{ running: Running; secureOrigin: string }> {
  const receiver = await startReceiver((request, response, nth) => {
    const { headers, path, body } = request
    const ownSecrets = path === `/${plant('path')}` ? saidByCrm.map(plant) : []
    const everything = [path, JSON.stringify(headers), body.toString(), ...ownSecrets].join(' ')
    if (path === '/token')
      answer(
        200,
        { 'content-type': 'application/json' },
        JSON.stringify({ access_token: plant('accessToken'), token_type: 'Bearer', expires_in: 3_600 }),
      )(request, response, nth)
    else if (path === '/no-token')
      answer(
        401,
        { 'content-type': 'application/json' },
        JSON.stringify({ error: 'invalid_client', error_description: `no: ${plant('wrongClientSecret')}` }),
      )(request, response, nth)
    else if (['/fine', '/ops'].includes(path)) answer(200)(request, response, nth)
    else answer(422, {}, `not accepted: ${everything}`)(request, response, nth)
  })
  const secure = await startReceiver(answer(200), { identity })
  onTestFinished(async () => {
    await Promise.all([receiver.stop(), secure.stop()])
  })
  const folder = mkdtempSync(join(tmpdir(), 'sluice-catalog-secrets-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  const keys = join(folder, 'keys')
  writeFileSync(keys, newKeyLine())
  const tokens = await makeTokens()
  onTestFinished(() => tokens.remove())
  const scene = await setScene({
    catalog: { sources: [], destinations: [] },
    variables: {
      SLUICE_CATALOG_SOURCE: 'topic',
      SLUICE_CATALOG_KEYS_FILE: keys,
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_ATTEMPTS_ANSWERS: 'true',
      SLUICE_NOTICES_DEAD_LETTERS: '1',
      // So notices are decided each second or so.
      SLUICE_NOTICES_FAILING_AFTER: '4s',
      SLUICE_STATE_FOLDER: join(folder, 'data/state'),
      SLUICE_INDEX_FOLDER: join(folder, 'data/log'),
      SLUICE_LOG_LEVEL: 'debug',
      CATALOG_PLANTED: plant('secretOfVariable'),
    },
  })
  onTestFinished(() => scene.close())
  const processes: SluiceProcess[] = []
  const run = async (role: string, own: Record<string, string> = {}): Promise<SluiceProcess> => {
    const one = await startSluice({ ...scene.variables, ...own }, { role })
    onTestFinished(() => one.kill())
    processes.push(one)
    return one
  }
  await run('worker')
  const index = await run('log serve')
  const admin = await run('admin', { SLUICE_INDEX_URL: `http://127.0.0.1:${index.queryPort}` })
  const said: Said[] = []
  // Without a source, a gateway isn't ready.
  const shop = { writeKeys: [plant('writeKey')], serverKeys: [plant('serverKey')] }
  await change({ admin, tokens, said }, 'PUT /v1/sources/shop', shop)
  const gateway = await run('gateway')
  const running = { scene, tokens, folder, processes, gateway, admin, receiver, said }
  return { running, secureOrigin: secure.origin }
}

type Asked = Pick<Running, 'admin' | 'tokens' | 'said'>
type Called = { readonly json: Readonly<Record<string, unknown>>; readonly headers: Headers }
type Call = {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** `undefined`: no token. */
  readonly as?: keyof Omit<AdminTokens, 'file' | 'remove'> | undefined
}

/** Calls the admin API, and notes its answer. A call that is refused is an answer too. */
async function call(
  { admin, tokens, said }: Asked,
  where: string,
  { body, headers = {}, as }: Call = {},
): Promise<Called> {
  const [method = 'GET', path = ''] = where.split(' ')
  const given = await fetch(`http://127.0.0.1:${admin.adminPort}${path}`, {
    method,
    headers: {
      ...(as !== undefined && { authorization: `Bearer ${tokens[as]}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await given.text()
  const { 'set-cookie': _, ...told } = Object.fromEntries(given.headers)
  said.push({ where: `${where} as ${as ?? 'nobody'}`, text: `${JSON.stringify(told)}\n${text}` })
  const isJson = given.headers.get('content-type')?.includes('json') === true
  return { json: isJson && text !== '' ? recordOf(JSON.parse(text)) : {}, headers: given.headers }
}

/** Makes a change that has to be accepted. */
async function change(running: Asked, where: string, body?: unknown, version?: string): Promise<Called> {
  const condition = version === undefined ? { 'if-none-match': '*' } : { 'if-match': version }
  const called = await call(running, where, { body, headers: condition, as: 'admin' })
  if ('status' in called.json && Number(called.json['status']) >= 400)
    throw new Error(JSON.stringify(called.json))
  return called
}

/** Runs a command that has to succeed, and notes its output. */
async function command({ scene, said }: Running, args: readonly string[], input = ''): Promise<string> {
  const { code, stdout, stderr } = await runToEnd(args, scene.variables, { input })
  expect([args, code, code === 0 ? '' : stderr]).toEqual([args, 0, ''])
  said.push({ where: `sluice ${args.join(' ')}`, text: stdout + stderr })
  return stdout
}

/** Notes a secret that an answer gives, this once. */
function made(name: string, text: unknown, where: string): void {
  planted[name] = String(text)
  places[name] = [where]
}

async function plantByApi(running: Running, secureOrigin: string): Promise<void> {
  const { origin } = running.receiver
  const put = (id: string, hook: object, more: object = {}): Promise<Called> =>
    change(running, `PUT /v1/destinations/${id}`, { sources: ['shop'], hooks: [hook], ...more })
  await put(
    'crm',
    { url: `${origin}/${plant('path')}`, headers: { 'X-Api-Key': plant('header') } },
    {
      sharedSecret: plant('sharedSecret'),
      signing: { standardWebhooks: true, ed25519: [plant('signingKey')] },
    },
  )
  const [username, password] = [plant('username'), plant('password')]
  await put('basic', { url: `${origin}/basic`, login: { kind: 'basic', username, password } })
  const oauth = (path: string, clientSecret: string): object => ({
    url: `${origin}/oauth`,
    login: { kind: 'oauth2', tokenUrl: `${origin}${path}`, clientId: 'sluice', clientSecret },
  })
  await put('oauth', oauth('/token', plant('clientSecret')))
  await put('no-token', oauth('/no-token', plant('wrongClientSecret')))
  const tls = { certificate: client.cert, key: client.key, ca: authority.cert }
  await put('mutual', { url: `${secureOrigin}/mutual`, tls })

  // The notices about the others, which go to the operators' own endpoint.
  await change(running, 'PUT /v1/sources/sluice', {})
  await put('ops', { url: `${origin}/ops` }, { sources: ['sluice'] })
  await plantTokens(running)
}

async function plantTokens(running: Running): Promise<void> {
  for (const name of ['kept', 'revoked']) {
    const { json } = await call(running, 'POST /v1/tokens', {
      as: 'admin',
      body: { name, right: 'admin', scope: 'all' },
    })
    made(`token ${name}`, json['token'], 'POST /v1/tokens as admin')
  }
  await change(running, 'DELETE /v1/tokens/revoked', undefined, '*')
  const { json: link } = await call(running, 'POST /v1/links', {
    as: 'admin',
    body: { name: 'initech', label: 'tenant=initech', rights: ['see'] },
  })
  made('link', /#link=(.+)$/.exec(String(link['link']))?.[1], 'POST /v1/links as admin')
  const { json: code } = await call(running, 'POST /v1/session/codes', { as: 'operate' })
  made('code', code['code'], 'POST /v1/session/codes as operate')
}

async function plantByCommands(running: Running): Promise<void> {
  const destination = (sharedSecret: string): object => ({
    sources: ['shop'],
    sharedSecret,
    hooks: [{ url: `${running.receiver.origin}/fine` }],
  })
  const set = ['destinations', 'set', 'by-command', '-']
  await command(running, set, stringify(destination(plant('secretOfCommand'))))
  await command(
    running,
    ['destinations', 'set', 'by-variable', '-'],
    stringify(destination('${CATALOG_PLANTED}')),
  )
  const applied = { destinations: [{ id: 'applied', ...destination(plant('secretOfApply')) }] }
  await command(running, ['apply', '-f', '-', '--yes'], stringify(applied))
  const key = await command(running, ['sources', 'key', 'shop'])
  made('madeWriteKey', /: (wk_\S+)/.exec(key)?.[1], 'sluice sources key shop')
  const create = ['tokens', 'create', '--name', 'by-command', '--right', 'read', '--all']
  made(
    'token by-command',
    /sluice_\S+/.exec(await command(running, create))?.[0],
    `sluice ${create.join(' ')}`,
  )
}

/** Replaces secrets, ends the former ones, changes one by hand, and removes a destination. */
async function rotate(running: Running): Promise<void> {
  const where = 'POST /v1/destinations/crm/rotate'
  const { json } = await change(running, where, {})
  made('rotated', json['secret'], `${where} as admin`)
  const { json: ofKeys } = await change(running, `${where}?ed25519=true`, {})
  const version = `r${Number(ofKeys['revision'])}`
  await until(
    'the worker knows the new secret',
    async () => (await running.processes[0]?.metric('sluice_catalog_info', { version })) === 1,
  )
  saidByCrm = ['sharedSecret', 'rotated']
  await deliver(running, 'while-rotating')
  saidByCrm = ['rotated']
  await change(running, `${where}/end`, {})
  await change(running, `${where}/end?ed25519=true`, {})
  const twice = ['destinations', 'rotate', 'by-command', '--old-ends-at', '2099-01-01T00:00:00Z']
  made(
    'rotated by a command',
    /whsec_\S+/.exec(await command(running, twice))?.[0],
    `sluice ${twice.join(' ')}`,
  )
  const { headers } = await call(running, 'GET /v1/destinations/basic', { as: 'admin' })
  await change(running, 'DELETE /v1/destinations/basic', undefined, headers.get('etag') ?? '')
  await command(running, ['destinations', 'rm', 'by-variable', '--yes'])
}

async function deliver(running: Running, messageId: string): Promise<void> {
  const { gateway, said } = running
  const sent = await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${plant('writeKey')}:`)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ userId: 'u1', event: 'Bought', messageId }),
  })
  expect(sent.status).toBe(200)
  said.push({ where: 'the answer of the gateway', text: await sent.text() })
  await until('endpoints have answered it, and it is indexed', async () => {
    const path = `/v1/log/messages/${messageId}`
    const { json } = await call(running, `GET ${path}`, { as: 'read' })
    const text = JSON.stringify(json)
    return ['crm', 'oauth', 'mutual', 'by-command'].every((id) => text.includes(`"${id}"`))
  })
}

/** Signs in by everything that signs in, and asks with each session. */
async function signIn(running: Running): Promise<void> {
  const { admin, tokens } = running
  const origin = `http://127.0.0.1:${admin.adminPort}`
  const ways = { token: tokens.read, link: plant('link'), code: plant('code') }
  for (const [by, text] of Object.entries(ways)) {
    const { headers } = await call(running, 'POST /v1/session', { body: { [by]: text }, headers: { origin } })
    const cookie = headers.getSetCookie()[0]?.split(';')[0] ?? ''
    expect(cookie).toContain('=')
    made(`session by ${by}`, cookie.split('=')[1], 'nowhere')
    for (const path of ['/v1/session', '/v1/destinations', '/v1/health'])
      await call(running, `GET ${path}`, { headers: { cookie } })
    if (by === 'code') await call(running, 'DELETE /v1/session', { headers: { cookie, origin } })
  }
}

/** Calls every route that reads, with a token that sees little and one that sees all. */
async function readAllRoutes(running: Running): Promise<void> {
  const { json: replay } = await call(running, 'POST /v1/replays', {
    as: 'operate',
    body: { selection: { of: 'dead-letters', destination: 'crm' } },
  })
  await until('it is replayed', async () => {
    const { json } = await call(running, `GET /v1/replays/${String(replay['id'])}`, { as: 'read' })
    return json['state'] === 'done'
  })
  const { json: history } = await call(running, 'GET /v1/catalog/history', { as: 'read' })
  const revisions = listOf(history['changes']).map((one) => String(recordOf(one)['revision']))
  expect(revisions.length).toBeGreaterThan(10)
  const values: Readonly<Record<string, readonly string[]>> = {
    destination: ['crm', 'oauth', 'no-token', 'mutual', 'by-command', 'applied', 'basic'],
    source: ['shop'],
    message: ['while-rotating', 'after'],
    replay: [String(replay['id'])],
    revision: revisions,
  }
  for (const { method, path, isStream } of adminRoutes) {
    if (method !== 'GET' || isStream === true) continue
    const param = /\{(\w+)\}/.exec(path)?.[1]
    for (const value of param === undefined ? [''] : (values[param] ?? []))
      for (const as of ['read', 'admin'] as const)
        await call(running, `GET ${path.replace(`{${param}}`, value)}`, { as })
  }
  for (const as of ['read', 'admin'] as const) {
    await call(running, 'POST /v1/log/search', { as, body: {} })
    await call(running, 'POST /v1/log/stats', { as, body: { groupBy: 'destination', step: '1m' } })
    await call(running, 'POST /v1/events/search', { as, body: { text: 'Bought' } })
  }
  for (const id of ['crm', 'oauth', 'no-token', 'mutual'])
    await call(running, `POST /v1/destinations/${id}/test`, { as: 'operate', body: {} })
}

async function runAllCommands(running: Running): Promise<void> {
  const { scene, folder } = running
  const exported = await command(running, ['catalog', 'export'])
  writeFileSync(join(folder, 'exported.yaml'), exported)
  const commands = [
    ['catalog', 'export', '--sealed', '-'],
    ['catalog', 'export', '--sealed', '-', '--copy'],
    ['catalog', 'history'],
    ['catalog', 'history', 'destination/crm'],
    ['catalog', 'diff', join(folder, 'exported.yaml')],
    ['destinations', 'list', '--json'],
    ['destinations', 'get', 'crm', '--json'],
    ['destinations', 'get', 'oauth'],
    ['destinations', 'status', 'no-token'],
    ['sources', 'list'],
    ['sources', 'get', 'shop'],
    ['tokens', 'list', '--json'],
    ['status', '--json'],
    ['config'],
  ]
  for (const args of commands) await command(running, args)
  // It fails, because its login does.
  const { stdout, stderr } = await runToEnd(['destinations', 'test', 'no-token'], scene.variables)
  running.said.push({ where: 'sluice destinations test no-token', text: stdout + stderr })
}

/** Opens all secrets that the topic ever had, also those that Sluice has made and nobody has seen. */
async function addSealed({ scene }: Running): Promise<void> {
  const topic = `${scene.prefix}catalog`
  const keys = catalogKeys(readFileSync(scene.variables['SLUICE_CATALOG_KEYS_FILE'] ?? '', 'utf8').trim())
  const definitions = new Definitions(topic, keys)
  const known = new Set(Object.values(planted))
  for (const { revision, objects } of await readHistory(`${topic}-history`, new RecordSeals(topic, keys)))
    for (const { name, after } of objects) {
      if (after === undefined) continue
      withSecretFields(name.kind, definitions.plain(name, after), (text, { field }) => {
        if (!known.has(text)) planted[`${keyOf(name)} ${field} of ${revision}`] = text
        known.add(text)
        return text
      })
    }
}

/** The paths of URLs are shown to whoever may change them, and the keys of clients to whoever reads sources. */
function mayHave(where: string, what: string): boolean {
  if (places[what]?.includes(where) === true) return true
  const isOfCatalog = /^(the (topic catalog|file )|sluice (catalog|sources|apply))/.test(where)
  if (/writeKey/i.test(what)) return isOfCatalog || /\/v1\/(sources|catalog)\//.test(where)
  if (what !== 'path' && !/ url of \d+$/.test(what)) return false
  return (
    /^GET \/v1\/(destinations|catalog)\/.* as admin$/.test(where) ||
    /^sluice (catalog (export|diff|history)|destinations get)/.test(where)
  )
}

test('no secret that the catalog ever had is in clear in Kafka, on the disk, in a log, an answer or a metric', async () => {
  const { running, secureOrigin } = await start()
  const { scene, tokens, folder, processes, receiver, said } = running
  await plantByApi(running, secureOrigin)
  await plantByCommands(running)
  await rotate(running)
  await deliver(running, 'after')
  await signIn(running)
  await readAllRoutes(running)
  await runAllCommands(running)
  const notices = await until('there are notices', () => {
    const all = receiver.requestsTo('/ops')
    return all.length > 0 ? all : undefined
  })
  said.push(...notices.map(({ body }) => ({ where: 'a notice', text: body.toString() })))
  for (const { httpPort } of processes) {
    const text = await (await fetch(`http://127.0.0.1:${httpPort}/metrics`)).text()
    said.push({ where: 'metrics', text })
  }
  await addSealed(running)
  for (const one of processes.toReversed()) {
    await one.terminate()
    said.push({ where: 'a log', text: JSON.stringify(one.log) + one.stderr })
  }
  const records = await recordsOf(scene.prefix)
  const files = filesIn(join(folder, 'data'))
  said.push(...records, ...files)

  const topics = new Set(records.map(({ where }) => where))
  for (const topic of ['catalog', 'catalog-history', 'health', 'attempts', 'replay-jobs'])
    expect(topics).toContain(`the topic ${topic}`)
  expect(files.length).toBeGreaterThan(2)
  expect(said.map(({ text }) => text).join()).toContain('not accepted: [redacted]')
  const { read, operate, admin } = tokens
  expectNowhere({ ...planted, read, operate, admin }, said, mayHave)
})
