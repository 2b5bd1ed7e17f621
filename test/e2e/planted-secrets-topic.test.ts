import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { recordOf } from '../../src/catalog/plain-data.ts'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import { type AdminTokens, makeTokens } from '../support/admin.ts'
import { readAll } from '../support/kafka.ts'
import { answer, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { type Scene, setScene } from './scene.ts'

/** Secrets that people put into a catalog in its topic, also by mistake. */
const planted = {
  header: 'planted-header-2f61',
  path: 'planted-path-8c0d',
  shared: 'planted-shared-41aa',
  next: 'planted-next-secret-90',
  serverKey: 'planted-server-key-7734',
  variable: 'planted-variable-55e1',
  /** In changes that are refused. */
  faultyHeader: 'planted-faulty-header-12\u0000',
  faultyPath: 'planted-faulty-path-3b',
  faultyField: 'planted-faulty-field-6e',
}

type Setting = { scene: Scene; tokens: AdminTokens; folder: string; origin: string; keyLine: string }

async function openScene(): Promise<Setting> {
  const receiver = await startReceiver(answer(422, {}, `no: ${planted.path} ${planted.shared}`))
  const folder = mkdtempSync(join(tmpdir(), 'sluice-planted-topic-'))
  const tokens = await makeTokens()
  const keyLine = newKeyLine()
  writeFileSync(join(folder, 'keys'), keyLine)
  const scene = await setScene({
    catalog: { sources: [], destinations: [] },
    variables: {
      CATALOG_PLANTED: planted.variable,
      SLUICE_CATALOG_SOURCE: 'topic',
      SLUICE_CATALOG_KEYS_FILE: join(folder, 'keys'),
      SLUICE_STATE_FOLDER: join(folder, 'state'),
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_LOG_LEVEL: 'debug',
    },
  })
  onTestFinished(async () => {
    scene.close()
    tokens.remove()
    await receiver.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  return { scene, tokens, folder, origin: receiver.origin, keyLine }
}

function destination(origin: string): Readonly<Record<string, unknown>> {
  const headers = { Authorization: `Bearer ${planted.header}`, 'X-Key': '$${' }
  return {
    id: 'crm',
    sources: ['shop', 'sluice'],
    sharedSecret: planted.shared,
    signing: { standardWebhooks: true },
    hooks: [{ id: 'main', url: `${origin}/${planted.path}`, headers }],
  }
}

test('no secret of a catalog in its topic is in anything that is written, said, answered or counted', async () => {
  const { scene, tokens, folder, origin, keyLine } = await openScene()
  const running: SluiceProcess[] = []
  for (const role of ['worker', 'gateway', 'admin']) {
    const one = await startSluice(scene.variables, { role })
    onTestFinished(() => one.kill())
    running.push(one)
  }
  const admin = running.at(-1)
  const said: string[] = []
  /** What shows whole URLs to those who may change them. */
  const withUrls: string[] = []
  const ask = async (
    method: string,
    path: string,
    { body, headers = {}, token = tokens.admin, to = said }: AskOptions = {},
  ) => {
    const answered = await fetch(`http://127.0.0.1:${admin?.adminPort}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await answered.text()
    to.push(text)
    return {
      status: answered.status,
      etag: answered.headers.get('etag') ?? '',
      json: recordOf(JSON.parse(text)),
    }
  }
  const isNew = { 'if-none-match': '*' }
  const crm = destination(origin)
  const sources = [{ id: 'shop', writeKeys: ['shop-key'], serverKeys: [planted.serverKey] }, { id: 'sluice' }]
  const applied = { body: { sources, destinations: [crm] }, headers: { 'idempotency-key': 'planted-1' } }
  for (const query of ['?dryRun=true', '', ''])
    expect((await ask('POST', `/v1/catalog/apply${query}`, applied)).status).toBe(200)
  expect((await ask('GET', '/v1/destinations/crm', { token: tokens.read })).status).toBe(200)
  const seen = await ask('GET', '/v1/destinations/crm', { to: withUrls })
  const path = '/v1/destinations/crm'
  const next = { body: { nextSharedSecret: planted.next }, headers: { 'if-match': seen.etag } }
  const changed = await ask('PATCH', path, next)
  expect(changed.status).toBe(200)

  // What is refused must not be quoted either.
  const faulty: readonly object[] = [
    { hooks: [{ url: `ftp://example.com/${planted.faultyPath}` }] },
    { hooks: [{ url: `https://u:${planted.faultyPath}@example.com/` }] },
    { hooks: [{ url: `${origin}/`, headers: { Authorization: planted.faultyHeader } }] },
    { unknown: planted.faultyField },
    { hooks: [{ url: `${origin}/`, unknown: planted.faultyField }] },
    { sharedSecret: { unknown: planted.faultyField } },
    { sharedSecret: '${CATALOG_PLANTED}' },
    { labels: { tenant: `${planted.faultyField}\u0000` } },
    { rateLimit: planted.faultyField },
  ]
  for (const more of faulty) {
    const put = await ask('PUT', '/v1/destinations/bad', {
      body: { ...crm, id: 'bad', ...more },
      headers: isNew,
    })
    expect([more, put.status]).toEqual([more, put.status === 400 ? 400 : 422])
    const all = await ask('POST', '/v1/catalog/apply', {
      body: { destinations: [{ ...crm, id: 'bad', ...more }] },
    })
    expect([more, all.status]).toEqual([more, all.status === 400 ? 400 : 422])
  }

  const revision = Number(changed.json['revision'])
  await ask('GET', `/v1/catalog/history/${revision}`, { token: tokens.read })
  expect((await ask('POST', `/v1/catalog/history/${revision}/undo`)).status).toBe(200)
  const bulk = { selection: { destinations: ['crm'] }, do: 'pause' }
  expect((await ask('POST', '/v1/destinations/bulk', { body: bulk })).status).toBe(200)
  expect((await ask('POST', '/v1/destinations/bulk', { body: { ...bulk, do: 'resume' } })).status).toBe(200)
  for (const read of [
    '/v1/destinations',
    '/v1/sources',
    '/v1/sources/shop',
    '/v1/status',
    '/v1/audit',
    '/v1/catalog/history',
  ])
    expect((await ask('GET', read, { token: tokens.read })).status).toBe(200)

  const commands: readonly (readonly [readonly string[], string[]])[] = [
    [['destinations', 'get', 'crm'], withUrls],
    [['destinations', 'list', '--json'], said],
    [['catalog', 'export'], withUrls],
    [['catalog', 'export', '--sealed', '-'], said],
    [['catalog', 'export', '--sealed', '-', '--copy'], said],
    [['catalog', 'history', '--json'], said],
    [['sources', 'get', 'shop'], said],
    [['config'], said],
  ]
  const copied = async (): Promise<boolean> =>
    (await runToEnd(['catalog', 'export', '--sealed', '-', '--copy'], scene.variables)).code === 0
  await until('the copy is on the disk', copied)
  for (const [command, to] of commands) {
    const { code, stdout, stderr } = await runToEnd(command, scene.variables)
    expect([command, code]).toEqual([command, 0])
    to.push(stdout, stderr)
  }

  await scene.send('shop', ['one'])
  const worker = running[0]
  await until('it is dead', async () => (await worker?.metric('sluice_dead_letters_total')) === 1)
  for (const one of running) {
    said.push(await (await fetch(`http://127.0.0.1:${one.httpPort}/metrics`)).text())
    await one.terminate()
    said.push(JSON.stringify(one.log), one.stderr)
  }
  const state = join(folder, 'state')
  const files = globSync('**/*', { cwd: state, withFileTypes: true }).filter((file) => file.isFile())
  expect(files.length).toBeGreaterThan(0)
  said.push(...files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1')))
  for (const topic of [
    'catalog',
    'catalog-history',
    'replay-jobs',
    'notices',
    'health',
    'attempts',
    'dead-letters',
  ])
    for (const { key, value, headers } of await readAll(`${scene.prefix}${topic}`))
      said.push(String(key), value?.toString('latin1') ?? '', JSON.stringify(headers))

  const { read, operate, admin: adminToken } = tokens
  const [, key = keyLine] = keyLine.split(' ')
  const secrets = { ...planted, read, operate, adminToken, key }
  for (const [what, text] of Object.entries(secrets)) {
    expect([what, said.join('\n').includes(text)]).toEqual([what, false])
    if (what !== 'path') expect([what, withUrls.join('\n').includes(text)]).toEqual([what, false])
  }
}, 180_000)

type AskOptions = {
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly token?: string
  readonly to?: string[]
}
