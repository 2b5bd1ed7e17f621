import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newKeyLine } from '../../../src/catalog-log/keys.ts'
import { type Scene, setScene } from '../../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../../support/admin.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../../support/worker-process.ts'

let scene: Scene
let tokens: AdminTokens
let admin: SluiceProcess
let folder: string

beforeAll(async () => {
  tokens = await makeTokens()
  folder = mkdtempSync(join(tmpdir(), 'sluice-catalog-keys-'))
  writeFileSync(join(folder, 'keys'), newKeyLine())
  scene = await setScene({
    catalog: { sources: [{ id: 'shop' }], destinations: [] },
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_CATALOG_SOURCE: 'topic',
      SLUICE_CATALOG_KEYS_FILE: join(folder, 'keys'),
    },
  })
  admin = await startSluice(scene.variables, { role: 'admin' })
})

afterAll(async () => {
  await admin?.kill()
  scene.close()
  tokens.remove()
  rmSync(folder, { recursive: true, force: true })
})

type Answer = { status: number; etag: string; json: Record<string, unknown>; text: string }

async function call(
  method: string,
  path: string,
  {
    token = tokens.admin,
    body,
    headers = {},
  }: { token?: string; body?: object; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const answered = await fetch(`http://127.0.0.1:${admin.adminPort}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answered.text()
  return { status: answered.status, etag: answered.headers.get('etag') ?? '', json: JSON.parse(text), text }
}

const isNew = { 'if-none-match': '*' }

test('an object is made, read, changed under its ETag, and removed; each change is in the audit trail', async () => {
  expect((await call('PUT', '/v1/sources/shop', { body: {}, headers: isNew })).status).toBe(200)
  const crm = {
    sources: ['shop'],
    sharedSecret: 's3cr3tSHARED1',
    hooks: [{ url: 'https://example.com/T02/s3cr3tPATH1', headers: { 'X-Team': 's3cr3tHEADER1' } }],
  }
  const path = '/v1/destinations/paused'
  const unconditional = await call('PUT', path, { body: crm })
  expect(unconditional).toMatchObject({ status: 428, json: { title: 'A condition is needed' } })
  const judged = await call('PUT', `${path}?dryRun=true`, { body: crm, headers: isNew })
  expect(judged).toMatchObject({ status: 200, json: { what: 'created' } })
  const made = await call('PUT', path, { body: crm, headers: isNew })
  expect(made).toMatchObject({ status: 200, json: { what: 'created' } })
  expect((await call('PUT', path, { body: crm, headers: isNew })).status).toBe(412)

  const shown = await call('GET', path)
  expect(shown.etag).toBe(made.etag)
  expect(shown.text).toContain('https://example.com/T02/s3cr3tPATH1')
  expect(shown.text).not.toMatch(/s3cr3tSHARED1|s3cr3tHEADER1/)
  expect((await call('GET', path, { token: tokens.read })).text).not.toContain('s3cr3t')
  const headers = { 'if-match': shown.etag }
  const destination = Object(shown.json['destination'])
  expect(await call('PUT', path, { body: destination, headers })).toMatchObject({
    json: { what: 'unchanged' },
  })

  const patched = await call('PATCH', path, { body: { state: 'paused', sharedSecret: null }, headers })
  expect(patched).toMatchObject({ status: 200, json: { what: 'changed' } })
  expect(await call('PATCH', path, { body: { state: 'on' }, headers })).toMatchObject({
    status: 412,
    etag: patched.etag,
  })
  expect((await call('GET', path)).json['destination']).not.toHaveProperty('sharedSecret')
  const faulty = await call('PATCH', path, {
    body: { sources: ['nope'] },
    headers: { 'if-match': patched.etag },
  })
  expect(faulty.status).toBe(422)
  expect(faulty.text).toContain('names the source')
  expect((await call('DELETE', '/v1/sources/shop', { headers: { 'if-match': '"77"' } })).status).toBe(412)
  expect((await call('DELETE', '/v1/sources/shop', { headers: { 'if-match': '"0"' } })).status).toBe(422)
  expect((await call('DELETE', path, { headers: { 'if-match': patched.etag } })).json).toMatchObject({
    what: 'removed',
    version: null,
  })
  expect((await call('GET', path)).status).toBe(404)
  const { json } = await call('GET', '/v1/audit')
  const entries = Object(json['entries']).filter(
    (one: { action: string }) => one.action === 'catalog_changed',
  )
  expect(entries).toMatchObject([
    { by: 'admin-er', destination: 'paused', detail: '- destination/paused' },
    { detail: '~ destination/paused' },
    { detail: '+ destination/paused' },
    { destination: null, detail: '+ source/shop' },
  ])
})

test.for(['PUT', 'PATCH', 'DELETE'])(
  '%s needs the right admin, and changes nothing without it',
  async (method) => {
    const path = '/v1/sources/of-nobody'
    const body = method === 'DELETE' ? {} : { body: {} }
    for (const token of [tokens.read, tokens.operate])
      expect((await call(method, path, { token, ...body, headers: isNew })).status).toBe(403)
    expect((await call(method, path, { token: 'sluice_wrong', ...body, headers: isNew })).status).toBe(401)
    expect((await call('GET', path)).status).toBe(404)
  },
)

test('what the API makes, commands see at once, and the list says it too', async () => {
  await call('PUT', '/v1/sources/blog', { body: { name: 'The blog' }, headers: isNew })
  const { stdout } = await runToEnd(['catalog', 'export', '--json'], scene.variables)
  expect(stdout).toContain('"The blog"')
  await expect
    .poll(async () => JSON.stringify((await call('GET', '/v1/sources')).json['sources']), { timeout: 20_000 })
    .toContain('"The blog"')
})
