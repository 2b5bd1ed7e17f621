import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Scene, setScene } from '../../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../../support/admin.ts'
import { produce } from '../../support/kafka.ts'
import { blockOf, stateOf } from '../../support/log-blocks.ts'
import { until } from '../../support/until.ts'
import { type SluiceProcess, startSluice } from '../../support/worker-process.ts'

const blocks = 20
const recordsOfBlock = 300
const records = blocks * recordsOfBlock
const megabytes = 1_000_000
/** The memory that clients who never read may take from a process, with garbage that isn't collected yet. */
const mostBytes = 300 * megabytes

let scene: Scene
let tokens: AdminTokens
let folder: string
let index: SluiceProcess
let admin: SluiceProcess
const sockets: Socket[] = []

beforeAll(async () => {
  tokens = await makeTokens()
  folder = mkdtempSync(join(tmpdir(), 'sluice-index-'))
  scene = await setScene({
    catalog: { sources: [{ id: 'shop' }], destinations: [] },
    variables: {
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      SLUICE_ADMIN_REQUEST_TIMEOUT: '5s',
      SLUICE_INDEX_FOLDER: folder,
    },
  })
  index = await startSluice(scene.variables, { role: 'log serve' })
  admin = await startSluice(scene.variables, { role: 'admin' })
  const failed = {
    messageId: 'large',
    verdict: 2,
    status: 500,
    isEnd: false,
    answer: Buffer.alloc(1_800, 'a'),
  }
  const value = blockOf(Array.from({ length: recordsOfBlock }, () => stateOf(failed)))
  for (let block = 0; block < blocks; block++)
    await produce(`${scene.prefix}attempts`, [{ key: '0', value, partition: 0 }])
  await until('all is indexed', async () => (await index.metric('sluice_log_indexed_total')) === records)
})

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

afterAll(async () => {
  await Promise.all([index, admin].map((one) => one.kill()))
  scene.close()
  tokens.remove()
  rmSync(folder, { recursive: true, force: true })
})

/** Opens a connection that never reads, and sends a text on it. */
async function neverReading(port: number, text: string): Promise<void> {
  const socket = connect(port, '127.0.0.1').pause()
  socket.on('error', () => undefined)
  sockets.push(socket)
  await once(socket, 'connect')
  socket.write(text)
}

function requestOf(path: string, body?: object): string {
  const text = body === undefined ? '' : JSON.stringify(body)
  const start = `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${tokens.read}\r\n`
  return `${start}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
}

const all = { messageId: 'large', limit: 1_000, from: '2026-01-01', to: '2099-01-01' }

async function memoryOf(one: SluiceProcess): Promise<number> {
  return one.metric('process_resident_memory_bytes')
}

async function ask(path: string, { token = tokens.operate, body }: { token?: string; body?: object } = {}) {
  const response = await fetch(`http://127.0.0.1:${admin.adminPort}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, headers: response.headers, json: Object(await response.json()) }
}

test('200 clients that never read cost the admin API little memory, and it answers others', async () => {
  const { adminPort } = admin
  const answered = (): Promise<number> =>
    admin.metric('sluice_admin_requests_total', { call: 'show_message' })
  const beforeBytes = await memoryOf(admin)
  for (let round = 0; round < 5; round++) {
    const earlier = await answered()
    for (let at = 0; at < 8; at++) await neverReading(adminPort, requestOf('/v1/log/messages/large'))
    await until('the round is answered', async () => (await answered()) >= earlier + 8)
    expect((await ask('/v1/health')).status).toBe(200)
  }
  for (let at = 0; at < 160; at++)
    await neverReading(adminPort, 'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(16))
  await until(
    'another token gets a large answer',
    async () => (await ask('/v1/log/messages/large')).status === 200,
  )
  expect((await memoryOf(admin)) - beforeBytes).toBeLessThan(mostBytes)
})

test('a client that pipelines searches and never reads has few of them under way, and others are answered', async () => {
  const { adminPort } = admin
  for (let at = 0; at < 20; at++) await neverReading(adminPort, requestOf('/v1/log/search', all).repeat(16))
  await until(
    'another token is answered',
    async () => (await ask('/v1/log/search', { body: all })).status === 200,
  )
  const refused = await until('most of them are refused', async () => {
    const count = await admin.metric('sluice_admin_requests_total', { call: 'search_log', status: '429' })
    return count > 300 && count
  })
  expect(refused).toBeLessThanOrEqual(20 * 16 - 4)
})

test('the pages of a search have as much text as an answer may have, and together all records', async () => {
  let found = 0
  let pages = 0
  for (let cursor: unknown; cursor !== null; pages++) {
    const body = { ...all, ...(cursor !== undefined && { cursor }) }
    const { status, json } = await ask('/v1/log/search', { body })
    expect(status).toBe(200)
    expect(JSON.stringify(json).length).toBeLessThan(4 * megabytes)
    found += Array.from(json.records).length
    ;({ cursor } = json)
  }
  expect(found).toBe(records)
  expect(pages).toBeGreaterThan(records / 1_000)
})

test.each([
  ['a limit of a billion', '/v1/log/search', { limit: 1_000_000_000 }, 400],
  ['a query string of 14 KB', `/v1/audit?limit=${'9'.repeat(14_000)}`, undefined, 400],
  ['a query string of 20 KB', `/v1/audit?limit=${'9'.repeat(20_000)}`, undefined, 431],
])('%s is refused', async (_what, path, body, status) => {
  expect(await ask(path, { token: tokens.admin, ...(body !== undefined && { body }) })).toMatchObject({
    status,
  })
})

test('2,000 clients that send their requests byte by byte keep nobody out', async () => {
  const { adminPort } = admin
  const { queryPort } = index
  for (const port of [adminPort, queryPort])
    for (let at = 0; at < 1_000; at++) await neverReading(port, 'GET /v1/he')
  expect((await ask('/v1/health')).status).toBe(200)
  const status = await fetch(`http://127.0.0.1:${queryPort}/v1/log/status`, { method: 'POST' })
  expect(await status.json()).toMatchObject({ rows: records })
  const trickling = setInterval(() => {
    for (const socket of sockets) socket.write('a')
  }, 200)
  try {
    await until('they are all cut off', () =>
      sockets.every(({ destroyed, writable }) => destroyed || !writable),
    )
  } finally {
    clearInterval(trickling)
  }
})
