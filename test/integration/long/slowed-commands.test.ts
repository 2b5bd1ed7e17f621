import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newKeyLine } from '../../../src/catalog-log/keys.ts'
import { createQueryClient } from '../../../src/delivery-log/query-client.ts'
import { makeTokens } from '../../support/admin.ts'
import { letterOf, writeLetters } from '../../support/dead-letters.ts'
import { produce, randomPrefix, readAll, testKafka } from '../../support/kafka.ts'
import { blockOf, stateOf } from '../../support/log-blocks.ts'
import { type Quotas, setQuotas } from '../../support/quotas.ts'
import { startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runToEnd, startSluice } from '../../support/worker-process.ts'
import { newIds, type Scene, setScene } from '../../e2e/scene.ts'

/** Tests of commands, of `admin` and of `log serve`, whose client id has used up a quota of the broker. */

/** What they say on standard error when they stand still for long. */
const told = /slows this process down: it reads nothing .* quota/

/** A command that reads more than its quota of ten seconds takes longer than this, in milliseconds. */
const leastSlowedMs = 5_000

const manyRequests: Quotas = { request_percentage: 0.01 }

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-slowed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/**
 * Opens a scene whose topics have one partition. `slowed`: the variables of a process that has the quotas. The
 * others have none.
 */
async function slowedScene(
  quotas: Quotas,
  { url = 'https://example.com/', more = {} }: { url?: string; more?: Record<string, string> } = {},
): Promise<{ scene: Scene; slowed: Record<string, string> }> {
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url }] }],
    },
    variables: { SLUICE_TOPICS_PARTITIONS: '1', ...more },
  })
  onTestFinished(() => scene.close())
  const clientId = `slow-${randomUUID()}`
  await setQuotas(clientId, quotas)
  return { scene, slowed: { ...scene.variables, SLUICE_KAFKA_CLIENT_ID: clientId } }
}

const text = 'x'.repeat(2_000)

/** Runs a command that may take longer than other commands, because it has to wait. Throws if it fails. */
async function runSlowed(
  args: readonly string[],
  variables: Record<string, string>,
  { input = '' } = {},
): Promise<{ stdout: string; stderr: string; tookMs: number }> {
  const { code, stdout, stderr, tookMs } = await runToEnd(args, variables, { input, killAfterMs: 150_000 })
  if (code !== 0)
    throw new Error(`sluice ${args.join(' ')} exited with ${code} after ${tookMs} ms:\n${stderr}${stdout}`)
  return { stdout, stderr, tookMs }
}

test('a sync of an audience writes each part once', async () => {
  const { scene, slowed } = await slowedScene(
    { producer_byte_rate: 20_000 },
    { more: { SLUICE_MESSAGE_MAX_BYTES: '39KiB' } },
  )
  const users = Array.from({ length: 12_000 }, (_, user) => `user-${user}-${'x'.repeat(24)}`)
  const args = [
    'audience',
    'sync',
    '-',
    '--format',
    'csv',
    '--space',
    'personas',
    '--audience',
    'a',
    '--name',
    'A',
  ]
  const { stderr } = await runSlowed(args, slowed, { input: `userId\n${users.join('\n')}\n` })
  expect(stderr).toMatch(told)
  const parts = (await readAll(`${scene.prefix}audience-changes`)).map(({ value }) =>
    JSON.parse(String(value)),
  )
  expect(parts.flatMap(({ userIds }): string[] => userIds).toSorted()).toEqual(users.toSorted())
})

test('an import of a catalog is one change, however long it takes', async () => {
  const keys = join(newFolder(), 'keys')
  writeFileSync(keys, newKeyLine())
  const { slowed } = await slowedScene(
    { producer_byte_rate: 60_000 },
    { more: { SLUICE_CATALOG_SOURCE: 'topic', SLUICE_CATALOG_KEYS_FILE: keys } },
  )
  const destinations = Array.from({ length: 600 }, (_, at) => ({
    id: `d${at}`,
    sources: ['shop'],
    hooks: [{ url: 'https://example.com/', headers: { 'X-Text': text } }],
  }))
  const input = JSON.stringify({ sources: [{ id: 'shop' }], destinations })
  const { stdout, stderr } = await runSlowed(['catalog', 'import', '-'], slowed, { input })
  expect(stdout).toContain('+ destination/d599')
  expect(stderr).toMatch(told)
  expect(stderr).not.toContain('Other processes')
  const { stdout: again } = await runSlowed(['catalog', 'import', '-'], slowed, { input })
  expect(again).toContain('Nothing differs')
  const { stdout: history } = await runSlowed(['catalog', 'history', '--json'], slowed)
  expect(history.trim().split('\n')).toHaveLength(1)
})

test('topics are made, and checked, though each request has to wait', async () => {
  const clientId = `slow-${randomUUID()}`
  await setQuotas(clientId, manyRequests)
  const variables = {
    SLUICE_KAFKA_BROKERS: testKafka().join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: randomPrefix(),
    SLUICE_KAFKA_CLIENT_ID: clientId,
  }
  const { stdout } = await runSlowed(['topics', 'apply'], variables)
  expect(stdout).toContain(`${variables.SLUICE_KAFKA_TOPIC_PREFIX}events`)
  await runSlowed(['topics', 'check'], variables)
})

test('a replay counts all dead letters, and each arrives once', async () => {
  const receiver = await startReceiver()
  onTestFinished(() => receiver.stop())
  const { scene, slowed } = await slowedScene(
    { consumer_byte_rate: 60_000 },
    { url: `${receiver.origin}/crm` },
  )
  const ids = newIds(300)
  const letters = ids.map((messageId) =>
    letterOf({ destinationId: 'crm', messageId, atMs: Date.now(), headers: { detail: text } }, scene.prefix),
  )
  // A batch that is larger than the quota of ten seconds would never be read.
  for (let from = 0; from < letters.length; from += 10)
    await writeLetters(`${scene.prefix}dead-letters`, letters.slice(from, from + 10))
  const worker = await startSluice(scene.variables)
  onTestFinished(() => worker.kill())
  const { stdout, tookMs } = await runSlowed(['replay', 'dead-letters', '--all'], slowed)
  expect(stdout).toContain('300 records sent again')
  expect(tookMs).toBeGreaterThan(leastSlowedMs)
  await until('all have arrived', () => receiver.requestsTo('/crm').length >= ids.length)
  const arrived = receiver.requestsTo('/crm').map(({ body }): string => JSON.parse(String(body)).messageId)
  expect(arrived.toSorted()).toEqual(ids.toSorted())
})

test('a scan of the events reads all of them', async () => {
  const { scene, slowed } = await slowedScene({ consumer_byte_rate: 60_000 })
  const ids = newIds(400)
  const events = ids.map((messageId) => ({
    key: messageId,
    value: JSON.stringify({ type: 'track', userId: 'u', event: 'E', messageId, properties: { text } }),
    headers: { 'source-id': 'shop' },
  }))
  for (let from = 0; from < events.length; from += 10)
    await produce(`${scene.prefix}events`, events.slice(from, from + 10))
  const args = ['log', 'scan', 'event=E', '--limit', '1000', '--json']
  const { stdout, stderr, tookMs } = await runSlowed(args, slowed)
  const found = stdout
    .trim()
    .split('\n')
    .map((line): string => JSON.parse(line).messageId)
  expect(found.toSorted()).toEqual(ids.toSorted())
  expect(tookMs).toBeGreaterThan(leastSlowedMs)
  expect(stderr).toContain('400 of 400 messages were read; 400 found.')
})

/** Starts `sluice admin` with the quotas, and returns a function that asks it. */
async function startSlowed(quotas: Quotas) {
  const tokens = await makeTokens()
  onTestFinished(() => tokens.remove())
  const { scene, slowed } = await slowedScene(quotas, { more: { SLUICE_ADMIN_TOKENS_FILE: tokens.file } })
  const letters = newIds(300).map((messageId) =>
    letterOf({ destinationId: 'crm', messageId, atMs: Date.now(), headers: { detail: text } }, scene.prefix),
  )
  for (let from = 0; from < letters.length; from += 10)
    await writeLetters(`${scene.prefix}dead-letters`, letters.slice(from, from + 10))
  const admin = await startSluice(slowed, { role: 'admin', readyMs: 60_000 })
  onTestFinished(() => admin.kill())
  const ask = async (path: string): Promise<{ status: number; body: unknown; tookMs: number }> => {
    const startedMs = performance.now()
    const response = await fetch(`http://127.0.0.1:${admin.adminPort}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokens.admin}`, 'content-type': 'application/json' },
      body: JSON.stringify({ selection: { of: 'dead-letters', destination: 'crm' } }),
    })
    const body: unknown = JSON.parse(await response.text())
    return { status: response.status, body, tookMs: performance.now() - startedMs }
  }
  return { scene, admin, ask }
}

/** Returns how many replays were asked for. */
async function ordersOf({ prefix }: Scene): Promise<number> {
  const records = await readAll(`${prefix}replay-jobs`)
  return records.filter(({ key }) => String(key).includes('order')).length
}

test('admin counts and replays, though its readings have to wait', async () => {
  const { scene, admin, ask } = await startSlowed({ consumer_byte_rate: 60_000, producer_byte_rate: 20_000 })
  const counted = await ask('/v1/replays/preview')
  expect(counted).toMatchObject({ status: 200, body: { counted: { records: 300 } } })
  expect((await ask('/v1/replays')).status).toBe(201)
  expect(await ordersOf(scene)).toBe(1)
  expect((await fetch(`http://127.0.0.1:${admin.httpPort}/readyz`)).status).toBe(200)
  expect((await admin.wholeLog()).some(({ msg }) => told.test(msg))).toBe(true)
})

test('admin starts and is ready though each request has to wait, and answers within a minute if nothing can be read', async () => {
  // The brokers answer without records to each fetch that a quota of requests slows down.
  const { scene, admin, ask } = await startSlowed(manyRequests)
  const counted = await ask('/v1/replays/preview')
  expect(counted).toMatchObject({ status: 503, body: { type: '/problems/unavailable' } })
  expect(counted.tookMs).toBeGreaterThan(50_000)
  expect(await ordersOf(scene)).toBe(0)
  expect((await fetch(`http://127.0.0.1:${admin.httpPort}/readyz`)).status).toBe(200)
  expect((await admin.wholeLog()).some(({ msg }) => told.test(msg))).toBe(true)
})

/** Starts `sluice log serve` with the quotas, and a log of these messages whose answers can't be compressed. */
async function startSlowedIndex(quotas: Quotas, ids: readonly string[]) {
  const { scene, slowed } = await slowedScene(quotas, { more: { SLUICE_INDEX_FOLDER: newFolder() } })
  const states = ids.map((messageId) => stateOf({ messageId, status: 400, answer: randomBytes(1_500) }))
  for (let from = 0; from < states.length; from += 10) {
    const block = { key: String(from), value: blockOf(states.slice(from, from + 10)), partition: 0 }
    await produce(`${scene.prefix}attempts`, [block])
  }
  const startedMs = performance.now()
  const index = await startSluice(slowed, { role: 'log serve' })
  onTestFinished(() => index.kill())
  const isReady = async () => (await fetch(`http://127.0.0.1:${index.httpPort}/readyz`)).status === 200
  return {
    index,
    query: createQueryClient(`http://127.0.0.1:${index.queryPort}`, undefined),
    startedMs,
    isReady,
  }
}

test('the index of the log takes each record once though its readings have to wait, and answers meanwhile', async () => {
  const ids = newIds(600)
  const { index, query, startedMs, isReady } = await startSlowedIndex({ consumer_byte_rate: 60_000 }, ids)
  const behind = new Set<boolean>()
  await until(
    'all is indexed',
    async () => {
      const { rows, behindMs } = await query.status()
      behind.add(behindMs > 0)
      expect(await isReady()).toBe(true)
      return rows >= ids.length
    },
    { timeoutMs: 150_000 },
  )
  expect(performance.now() - startedMs).toBeGreaterThan(leastSlowedMs)
  expect(behind).toContain(true)
  const { records } = await query.search({ fromMs: 0, toMs: Infinity }, { limit: 1_000 })
  expect(records.map(({ messageId }) => messageId).toSorted()).toEqual(ids.toSorted())
  expect(await index.metric('sluice_log_indexed_total')).toBe(ids.length)
  expect(index.log.some(({ msg }) => told.test(msg))).toBe(true)
})

test('the index of the log is ready and answers though each of its requests has to wait', async () => {
  const ids = newIds(10)
  const { index, query, isReady } = await startSlowedIndex(manyRequests, ids)
  await until('it says so', () => index.log.some(({ msg }) => told.test(msg)), { timeoutMs: 60_000 })
  expect((await query.status()).rows).toBeLessThanOrEqual(ids.length)
  expect(await isReady()).toBe(true)
})
