import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import type { LogQuery } from '../../src/delivery-log/log-query.ts'
import { createQueryClient } from '../../src/delivery-log/query-client.ts'
import { newIds, type Scene, setScene } from '../e2e/scene.ts'
import { openBreakableWay } from '../support/breakable-way.ts'
import { startClickHouse, type TestClickHouse } from '../support/clickhouse.ts'
import { produce } from '../support/kafka.ts'
import { blockOf, stateOf } from '../support/log-blocks.ts'
import { everything } from '../support/log-contract.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runSluice, runToEnd, type SluiceProcess, startSluice } from '../support/worker-process.ts'

let server: TestClickHouse
let receiver: Receiver
let scene: Scene
let folder: string
let running: SluiceProcess[]

beforeAll(async () => {
  server = await startClickHouse()
})

afterAll(() => server.stop())

beforeEach(async () => {
  receiver = await startReceiver({ '/hook': answer(200) })
  folder = mkdtempSync(join(tmpdir(), 'sluice-clickhouse-test-'))
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, `${server.password}\n`)
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: `${receiver.origin}/hook` }] }],
    },
    variables: {
      SLUICE_CLICKHOUSE_URL: server.url,
      SLUICE_CLICKHOUSE_USER: server.user,
      SLUICE_CLICKHOUSE_PASSWORD_FILE: passwordFile,
      SLUICE_CLICKHOUSE_DATABASE: 'sluice_test',
    },
  })
  running = []
})

afterEach(async () => {
  await Promise.all(running.map((one) => one.kill()))
  scene.close()
  await receiver.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function start(role: string): Promise<SluiceProcess> {
  const started = await startSluice(scene.variables, { role })
  running.push(started)
  return started
}

function ask({ queryPort }: SluiceProcess): LogQuery {
  return createQueryClient(`http://127.0.0.1:${queryPort}`, undefined)
}

async function idsIn(index: SluiceProcess): Promise<string[]> {
  return (await everything(ask(index))).map(({ messageId }) => messageId).toSorted()
}

async function log(states: number): Promise<string[]> {
  const ids = newIds(states)
  const value = blockOf(ids.map((messageId, at) => stateOf({ messageId, atMs: Date.now() - at * 100_000 })))
  await produce(`${scene.prefix}attempts`, [{ key: '0', value }])
  return ids
}

test('what workers deliver is found in ClickHouse, by its own process and by the commands', async () => {
  await runSluice(['log', 'ddl', '--apply'], scene.variables)
  await start('worker')
  const index = await start('log serve')
  const [id = ''] = newIds(1)
  await scene.send('shop', [id])
  await until('it is found', async () => (await ask(index).find(id)).length === 1)
  expect((await ask(index).status()).behindMs).toBe(0)
  const { stdout } = await runSluice(['log', 'find', id], scene.variables)
  expect(stdout).toContain('crm: delivered')
  const searched = await runSluice(['log', 'search', '--destination', 'crm', '--json'], scene.variables)
  expect(searched.stdout).toContain(id)
  const stats = await runSluice(['log', 'stats', '--json'], scene.variables)
  expect(stats.stdout).toContain('"succeeded":1')
})

test('killed at any time it inserts each record of the topic, and answers with none twice', async () => {
  await runSluice(['log', 'ddl', '--apply'], scene.variables)
  const ids: string[] = []
  const rounds = 5
  for (let round = 0; round < rounds; round++) {
    const index = await start('log serve')
    const producing = (async () => {
      for (let block = 0; block < 40; block++) ids.push(...(await log(50)))
    })()
    await until('some of it is inserted', async () => {
      return (await index.metric('sluice_log_indexed_total')) > round * 100
    })
    if (round < rounds - 1) await index.kill()
    await producing
  }
  const last = running.at(-1)
  if (last === undefined) throw new Error('nothing runs')
  const wanted = ids.toSorted()
  await until('all is there', async () => (await idsIn(last)).length >= wanted.length, { timeoutMs: 30_000 })
  expect(await idsIn(last)).toEqual(wanted)
})

test('a restart goes on where it was', async () => {
  await runSluice(['log', 'ddl', '--apply'], scene.variables)
  const first = await start('log serve')
  await log(10)
  await until('it is inserted', async () => (await ask(first).status()).rows === 10)
  expect((await first.terminate()).code).toBe(0)
  await log(5)
  const second = await start('log serve')
  await until('it is counted', async () => (await second.metric('sluice_log_indexed_total')) > 0)
  expect(await second.metric('sluice_log_indexed_total')).toBe(5)
  expect(await idsIn(second)).toHaveLength(15)
})

test('while ClickHouse is gone it says so and waits, and what was logged meanwhile is there afterwards', async () => {
  await runSluice(['log', 'ddl', '--apply'], scene.variables)
  const way = await openBreakableWay(server.url)
  onTestFinished(() => way.cut())
  scene.variables['SLUICE_CLICKHOUSE_URL'] = way.url
  const index = await start('log serve')
  const readyz = (): Promise<Response> => fetch(`http://127.0.0.1:${index.httpPort}/readyz`)
  const ids = await log(10)
  await until('it is inserted', async () => (await ask(index).status()).rows === 10)
  await way.cut()
  ids.push(...(await log(20)))
  await until('it says so', async () => (await (await readyz()).text()).includes('can not be written'))
  const refused = await runToEnd(['log', 'find', 'x'], scene.variables)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('SLUICE_CLICKHOUSE_URL')])
  await way.mend()
  await until('all is there', async () => (await idsIn(index)).length === ids.length)
  expect(await idsIn(index)).toEqual(ids.toSorted())
  await until('it is ready', async () => (await readyz()).ok)
})

test('without its tables it says which command makes them', async () => {
  const variables = { ...scene.variables, SLUICE_CLICKHOUSE_DATABASE: 'nobody_made' }
  const { code, stderr } = await runToEnd(['log', 'serve'], variables)
  expect([code, stderr]).toEqual([1, expect.stringContaining('sluice log ddl --apply')])
})

test('a login that is refused is told with its setting', async () => {
  const passwordFile = join(folder, 'wrong')
  writeFileSync(passwordFile, 'wrong')
  const variables = { ...scene.variables, SLUICE_CLICKHOUSE_PASSWORD_FILE: passwordFile }
  for (const args of [
    ['log', 'serve'],
    ['log', 'ddl', '--apply'],
    ['log', 'find', 'x'],
  ]) {
    const { code, stderr } = await runToEnd(args, variables)
    expect([code, stderr]).toEqual([1, expect.stringContaining('Authentication failed')])
    expect(stderr).toContain('clickhouse.user')
  }
})
