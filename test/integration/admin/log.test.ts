import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createUserHash } from '../../../src/delivery-log/user-hash.ts'
import { type Scene, setScene } from '../../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../../support/admin.ts'
import { produce } from '../../support/kafka.ts'
import { blockOf, stateOf } from '../../support/log-blocks.ts'
import { until } from '../../support/until.ts'
import { type SluiceProcess, startSluice } from '../../support/worker-process.ts'

const userKey = 'a key of more than sixteen characters'
const indexToken = 'a token of sixteen or more'
/** The beginning of a minute. */
const startMs = Math.floor(Date.now() / 60_000) * 60_000 - 10 * 60_000
const iso = (ms: number): string => new Date(ms).toISOString()

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
  const value = blockOf(states())
  await produce(`${scene.prefix}attempts`, [{ key: '0', value, partition: 0 }])
  await until('all is indexed', async () => (await index.metric('sluice_log_indexed_total')) === 27)
})

afterAll(async () => {
  await Promise.all([index, byUrl, byFolder].map((one) => one.kill()))
  scene.close()
  tokens.remove()
  rmSync(folder, { recursive: true, force: true })
})

/** A message that waits, and 25 that are delivered. */
function states() {
  const failed = {
    messageId: 'order/4711 €',
    destination: 'erp',
    firstSeenMs: startMs - 5,
    user: createUserHash(userKey)(Buffer.from('ann@example.com')),
    isEnd: false,
  }
  return [
    stateOf({ ...failed, atMs: startMs, verdict: 2, status: 503, durationMs: 40 }),
    stateOf({
      ...failed,
      atMs: startMs + 3,
      kind: 1,
      hook: '',
      verdict: 0,
      outcome: 0,
      status: 0,
      durationMs: 0,
      reason: 'failed',
      waitMs: 60_000,
    }),
    ...Array.from({ length: 25 }, (_, at) =>
      stateOf({ messageId: `fine-${at}`, atMs: startMs + 60_000 + at }),
    ),
  ]
}

async function call(path: string, body?: unknown, { adminPort } = byUrl) {
  const response = await fetch(`http://127.0.0.1:${adminPort}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${tokens.read}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const json: Record<string, unknown> = Object(await response.json())
  return { status: response.status, json }
}

const since = { from: iso(startMs - 1_000) }

describe.each(['an index elsewhere', 'files'])('by %s', (way) => {
  const ask = (path: string, body?: unknown) => call(path, body, way === 'files' ? byFolder : byUrl)

  test('the life of a message is told by destination, with when it is tried again', async () => {
    const dueAt = iso(startMs + 60_003)
    const { status, json } = await ask(`/v1/log/messages/${encodeURIComponent('order/4711 €')}`)
    const origin = { topic: 'events', partition: 0, offset: 0 }
    expect([status, json]).toEqual([
      200,
      {
        messageId: 'order/4711 €',
        deliveries: [
          {
            destination: 'erp',
            state: 'waiting',
            dueAt,
            records: [
              expect.objectContaining({
                at: iso(startMs),
                kind: 'attempted',
                hook: 'main',
                verdict: 'retry',
                outcome: 'answer',
                status: 503,
                durationMs: expect.closeTo(40, -1),
                reason: null,
                dueAt: null,
                firstSeenAt: iso(startMs - 5),
                origin,
              }),
              expect.objectContaining({
                kind: 'parked',
                hook: null,
                status: null,
                durationMs: null,
                reason: 'failed',
                dueAt,
              }),
            ],
          },
        ],
      },
    ])
  })

  test('pages go on where the one before ended, newest first', async () => {
    const ids: unknown[] = []
    let cursor: unknown
    do {
      const { json } = await ask('/v1/log/search', {
        ...since,
        destination: 'crm',
        limit: 10,
        ...(cursor !== undefined && { cursor }),
      })
      const records: { messageId: string }[] = Object(json['records'])
      ids.push(...records.map(({ messageId }) => messageId))
      cursor = json['cursor']
    } while (cursor !== null)
    expect(ids).toEqual(Array.from({ length: 25 }, (_, at) => `fine-${24 - at}`))
  })

  test.each([
    { filter: { user: 'ann@example.com' }, count: 2 },
    { filter: { user: 'bob@example.com' }, count: 0 },
    { filter: { isFailed: true }, count: 1 },
    { filter: { kinds: ['parked', 'dead'] }, count: 1 },
    { filter: { reason: 'failed' }, count: 1 },
    { filter: { status: 503, outcome: 'answer', source: 'shop', hook: 'main' }, count: 1 },
    { filter: { messageId: 'order/4711 €' }, count: 2 },
    { filter: { to: iso(startMs + 1) }, count: 1 },
    { filter: { replay: 'nobody' }, count: 0 },
  ])('a search for $filter finds $count', async ({ filter, count }) => {
    const { status, json } = await ask('/v1/log/search', { ...since, ...filter })
    expect([status, Object(json['records']).length]).toEqual([200, count])
  })

  test('minutes are counted, with how long attempts took', async () => {
    const { json } = await ask('/v1/log/stats', since)
    expect(json['minutes']).toEqual([
      expect.objectContaining({ minute: iso(startMs), succeeded: 0, failed: 1, parked: 1 }),
      expect.objectContaining({ minute: iso(startMs + 60_000), succeeded: 25, failed: 0, parked: 0 }),
    ])
    const [first]: { durationMs: { p95: number } }[] = Object(json['minutes'])
    expect(first?.durationMs.p95).toBeCloseTo(40, -1)
  })

  test('how far it reaches back is told', async () => {
    const { json } = await ask('/v1/log')
    expect(json).toMatchObject({ oldest: iso(startMs), records: 27 })
    expect(json['behindMs']).toBe(way === 'files' ? null : 0)
  })

  test('a cursor of no page is refused', async () => {
    const { status, json } = await ask('/v1/log/search', { cursor: 'nonsense' })
    expect([status, json['type'], json['detail']]).toEqual([
      400,
      '/problems/bad-request',
      expect.stringContaining('cursor'),
    ])
  })
})

test.each([
  ['/v1/log/search', { from: 'yesterday..' }],
  ['/v1/log/search', { from: '2026-01-02', to: '2026-01-01' }],
  ['/v1/log/search', { limit: 0 }],
  ['/v1/log/search', { kinds: ['lost'] }],
  ['/v1/log/stats', { cursor: 'a' }],
  ['/v1/log/stats', { other: 1 }],
])('%s with %o is a bad request', async (path, body) => {
  const { status, json } = await call(path, body)
  expect([status, json['type']]).toEqual([400, '/problems/bad-request'])
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
    says: 'can not be asked',
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
    await until('it is found', async () => (await call('/v1/log', undefined, admin)).json['records'] === 27)
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
