import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createUserHash, createValueHash, hexOfHash } from '../../../src/delivery-log/user-hash.ts'
import { type Scene, setScene } from '../../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../../support/admin.ts'
import { logForAdmin, recordsInLog, testAdminLog, userKey } from '../../support/admin-log.ts'
import { produce } from '../../support/kafka.ts'
import { blockOf, stateOf } from '../../support/log-blocks.ts'
import { until } from '../../support/until.ts'
import { type SluiceProcess, startSluice } from '../../support/worker-process.ts'

const indexToken = 'a token of sixteen or more'

let scene: Scene
let tokens: AdminTokens
let folder: string
let index: SluiceProcess
let byUrl: SluiceProcess
let byFolder: SluiceProcess

beforeAll(async () => {
  tokens = await makeTokens()
  folder = mkdtempSync(join(tmpdir(), 'sluice-index-'))
  scene = await setScene({
    catalog: { sources: [{ id: 'shop' }], destinations: [] },
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_INDEX_FOLDER: folder,
      SLUICE_INDEX_TOKEN: indexToken,
      SLUICE_ATTEMPTS_USER_KEY: userKey,
    },
  })
  index = await startSluice(scene.variables, { role: 'log serve' })
  const url = { SLUICE_INDEX_URL: `http://127.0.0.1:${index.queryPort}`, SLUICE_INDEX_FOLDER: '/nowhere' }
  byUrl = await startSluice({ ...scene.variables, ...url }, { role: 'admin' })
  byFolder = await startSluice(scene.variables, { role: 'admin' })
  const value = logForAdmin()
  await produce(`${scene.prefix}attempts`, [{ key: '0', value, partition: 0 }])
  await until('all is indexed', async () => (await index.metric('sluice_log_indexed_total')) === recordsInLog)
})

afterAll(async () => {
  await Promise.all([index, byUrl, byFolder].map((one) => one.kill()))
  scene.close()
  tokens.remove()
  rmSync(folder, { recursive: true, force: true })
})

async function call(path: string, body?: unknown, { adminPort } = byUrl) {
  const response = await fetch(`http://127.0.0.1:${adminPort}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${tokens.read}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const json: Record<string, unknown> = Object(await response.json())
  return { status: response.status, json }
}

describe('by an index elsewhere', () => {
  testAdminLog((path, body) => call(path, body, byUrl), 0)
})

describe('by files', () => {
  testAdminLog((path, body) => call(path, body, byFolder), null)
})

test.each([
  ['/v1/log/search', { from: 'yesterday..' }],
  ['/v1/log/search', { from: '2026-01-02', to: '2026-01-01' }],
  ['/v1/log/search', { limit: 0 }],
  ['/v1/log/search', { kinds: ['lost'] }],
  ['/v1/log/stats', { cursor: 'a' }],
  ['/v1/log/stats', { other: 1 }],
  ['/v1/log/stats', { step: '7m' }],
  // More than 1,500 steps.
  ['/v1/log/stats', { groupBy: 'status', step: '1m', from: '2026-01-01', to: '2026-01-03' }],
])('%s with %o is a bad request', async (path, body) => {
  const { status, json } = await call(path, body)
  expect([status, json['type']]).toEqual([400, '/problems/bad-request'])
})

test('statistics by steps have a number for each step and group, and say how many groups are left out', async () => {
  const range = { from: new Date(Date.now() - 86_400_000).toISOString(), step: '1h' }
  const { status, json } = await call('/v1/log/stats', { ...range, groupBy: 'destination', top: 1 })
  const groups: { succeeded: number[]; failed: number[]; dead: number[] }[] = Object(json['groups'])
  const times: string[] = Object(json['times'])
  expect([status, groups.length, 'minutes' in json]).toEqual([200, 1, false])
  for (const list of ['succeeded', 'failed', 'dead'] as const)
    expect(groups.map((group) => group[list].length)).toEqual([times.length])
  expect((await call('/v1/log/stats', range)).json['groups']).toMatchObject([{ key: '' }])
})

test('times before 1970 are no fault of the index', async () => {
  expect((await call('/v1/log/search', { from: '0001-01-01', to: '9999-12-31' })).status).toBe(200)
})

test('a message that the log does not have is not found, also where its id is long', async () => {
  for (const id of ['nobody', 'x'.repeat(900), '€'.repeat(900)]) {
    const { status, json } = await call(`/v1/log/messages/${encodeURIComponent(id)}`)
    expect([status, json['detail']]).toEqual([404, expect.stringContaining('nothing of this message')])
  }
})

test.each([
  { what: 'has no index', variables: { SLUICE_INDEX_FOLDER: '/nowhere' }, says: 'run `sluice log serve`' },
  {
    what: 'can not reach it',
    variables: { SLUICE_INDEX_URL: 'http://127.0.0.1:1' },
    says: 'can not be queried',
  },
  {
    what: 'can not read its token',
    variables: {
      SLUICE_INDEX_URL: 'http://127.0.0.1:1',
      SLUICE_INDEX_TOKEN: '',
      SLUICE_INDEX_TOKEN_FILE: '/nowhere',
    },
    says: 'SLUICE_INDEX_TOKEN_FILE',
  },
])('an admin that $what starts, and says so where it is asked', async ({ variables, says }) => {
  const admin = await startSluice({ ...scene.variables, ...variables }, { role: 'admin' })
  try {
    for (const [path, body] of [
      ['/v1/log'],
      ['/v1/log/messages/m'],
      ['/v1/log/search', {}],
      ['/v1/log/stats', {}],
    ] as const) {
      const { status, json } = await call(path, body, admin)
      expect([status, json['type'], json['detail']]).toEqual([
        503,
        '/problems/log-unavailable',
        expect.stringContaining(says),
      ])
    }
    expect((await call('/v1/health', undefined, admin)).status).toBe(200)
  } finally {
    await admin.kill()
  }
})

test('an index that comes later is found without a restart', async () => {
  const later = mkdtempSync(join(tmpdir(), 'sluice-index-'))
  const variables = { ...scene.variables, SLUICE_INDEX_FOLDER: join(later, 'log') }
  const admin = await startSluice(variables, { role: 'admin' })
  expect((await call('/v1/log', undefined, admin)).status).toBe(503)
  const second = await startSluice(variables, { role: 'log serve' })
  try {
    await until(
      'it is found',
      async () => (await call('/v1/log', undefined, admin)).json['records'] === recordsInLog,
    )
  } finally {
    await Promise.all([admin.kill(), second.kill()])
    rmSync(later, { recursive: true, force: true })
  }
})

test('a search by user says what to set where there is no key', async () => {
  const admin = await startSluice({ ...scene.variables, SLUICE_ATTEMPTS_USER_KEY: '' }, { role: 'admin' })
  try {
    const { status, json } = await call('/v1/log/search', { user: 'ann@example.com' }, admin)
    expect([status, json['detail']]).toEqual([400, expect.stringContaining('SLUICE_ATTEMPTS_USER_KEY')])
  } finally {
    await admin.kill()
  }
})

test('the audit trail says who has searched by user, and names the user as the log does', async () => {
  for (const path of ['/v1/log/search', '/v1/log/stats'])
    expect((await call(path, { user: 'user-4711', from: '2020-01-01' })).status).toBe(200)
  const response = await fetch(`http://127.0.0.1:${byUrl.adminPort}/v1/audit`, {
    headers: { authorization: `Bearer ${tokens.admin}` },
  })
  const text = await response.text()
  expect(text).not.toContain('user-4711')
  const detail = `user ${hexOfHash(createUserHash(userKey), 'user-4711')}`
  expect(JSON.parse(text).entries).toContainEqual(
    expect.objectContaining({ by: 'read-er', action: 'user_searched', detail, count: 2 }),
  )
})

test('records are found by an indexed value, and the audit trail says by a hash who has searched for it', async () => {
  const hash = createValueHash(userKey)
  const values = hash(Buffer.from('4711'))
  const value = blockOf([stateOf({ messageId: 'order', destination: 'crm', values })])
  await produce(`${scene.prefix}attempts`, [{ key: '0', value, partition: 0 }])
  const found = async () => (await call('/v1/log/search', { value: '4711' })).json['records']
  await until('it is indexed', async () => Object(await found()).length === 1)
  expect(await found()).toMatchObject([{ messageId: 'order' }])
  expect((await call('/v1/log/search', { value: '4712' })).json['records']).toEqual([])
  const response = await fetch(`http://127.0.0.1:${byUrl.adminPort}/v1/audit`, {
    headers: { authorization: `Bearer ${tokens.admin}` },
  })
  const detail = `value ${hexOfHash(hash, '4711')}`
  expect(Object(await response.json()).entries).toContainEqual(
    expect.objectContaining({ by: 'read-er', action: 'user_searched', detail }),
  )
})
