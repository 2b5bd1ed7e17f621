import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Partitioners } from 'kafkajs'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { stringify } from 'yaml'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { otherProgram } from '../support/kafka.ts'
import { processesWith } from '../support/processes.ts'
import { until } from '../support/until.ts'
import { runProgram } from '../support/sluice-process.ts'
import { runSluice } from '../support/worker-process.ts'
import { newIds } from './scene.ts'
import { startUp, type Up } from './up-process.ts'

let folder = ''
let receiver: CountingReceiver
const started: Up[] = []

beforeAll(async () => {
  receiver = await startCountingReceiver()
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-up-')))
  const catalog = {
    sources: [{ id: 'shop', writeKeys: ['shop-write-key'] }, { id: 'app' }],
    destinations: [
      { id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url('/crm') }] },
      { id: 'down', sources: ['app'], hooks: [{ url: receiver.url('/down') }] },
    ],
  }
  writeFileSync(join(folder, 'catalog.yaml'), stringify(catalog))
})

afterAll(async () => {
  for (const { interrupt } of started) await interrupt()
  await receiver.stop()
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})

async function up(): Promise<Up> {
  const running = await startUp(folder)
  started.push(running)
  return running
}

async function interruptInGoodOrder({ interrupt }: Up): Promise<void> {
  const { code, tookMs } = await interrupt()
  expect(code).toBe(0)
  expect(tookMs).toBeLessThan(15_000)
  expect(processesWith(folder)).toEqual([])
}

async function produceAsOthersDo(broker: string, sourceId: string, messageId: string): Promise<void> {
  const producer = otherProgram([broker]).producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const value = JSON.stringify({ type: 'track', messageId, userId: 'u1', event: 'Hello' })
  await producer.send({
    topic: 'sluice.events',
    messages: [{ key: 'u1', value, headers: { 'source-id': sourceId } }],
  })
  await producer.disconnect()
}

async function sendByCommand(broker: string, messageId: string): Promise<void> {
  const message = JSON.stringify({ type: 'track', messageId, userId: 'u1', event: 'Hello' })
  await runSluice(['send', '--source', 'shop', message], { KAFKA_BROKERS: broker })
}

/** Posts a message, as the README does with curl. curl declares the JSON as a form. */
async function post(origin: string, messageId: string): Promise<void> {
  const response = await fetch(`${origin}/v1/track`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from('shop-write-key:').toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: JSON.stringify({ messageId, userId: 'u1', event: 'Hello' }),
  })
  expect([response.status, await response.json()]).toEqual([200, { success: true }])
}

test('sluice up is Kafka, a gateway and a worker in a folder of one’s own, and keeps both their data', async () => {
  await receiver.behave('/down', { status: 503 })
  const [produced = '', sent = '', posted = '', waiting = '', last = ''] = newIds(5)
  const first = await up()
  expect(first.said).toContain('This is for development')
  expect(first.said).toMatch(/URLs on this machine \(127\.0\.0\.0\/8, ::1\) are allowed/)
  expect(first.said).toContain('created    sluice.events')
  expect(existsSync(join(folder, '.sluice/kafka'))).toBe(true)
  const [, admin = '', token = ''] =
    /^ {2}admin +(http:\S+)\/openapi\.json +with Authorization: Bearer (\S+)$/m.exec(first.said) ?? []
  const health = await fetch(`${admin}/v1/health`, { headers: { authorization: `Bearer ${token}` } })
  expect(await health.json()).toMatchObject({ status: 'ok', token: { name: 'developer', right: 'admin' } })
  expect((await fetch(`${admin}/v1/health`)).status).toBe(401)
  const [, code = ''] = /^ {2}console +http:\S+\/console\/#code=(\S+) /m.exec(first.said) ?? []
  const signIn = { method: 'POST', headers: { 'content-type': 'application/json' } }
  const signedIn = await fetch(`${admin}/v1/session`, { ...signIn, body: JSON.stringify({ code }) })
  expect([signedIn.status, signedIn.headers.get('set-cookie')]).toEqual([
    204,
    expect.stringMatching(/^sluice-\d+=sluice_session_\S+; Path=\/; HttpOnly; SameSite=Strict$/),
  ])
  const [metrics = ''] = /http:\S+\/metrics$/m.exec(first.said) ?? []
  expect((await fetch(metrics)).status).toBe(200)
  for (const url of [metrics, first.origin, admin])
    await expect(fetch(url.replace('127.0.0.1', '127.0.0.2')), 'only this machine').rejects.toThrow(
      'fetch failed',
    )
  // The command has no settings of `sluice up`, so it expects three replicas, two of them in sync.
  const here = {
    KAFKA_BROKERS: first.broker,
    SLUICE_TOPICS_PARTITIONS: '3',
    SLUICE_RETRY_LADDER: '1s',
    SLUICE_RETRY_THEN: '1s',
    SLUICE_TOPICS_DEVELOPMENT: 'false',
  }
  for (const command of ['check', 'apply'])
    expect((await runSluice(['topics', command], here)).stdout).toMatch(
      /^All topics are as Sluice needs them\.\nThis Kafka has one broker, .*\n$/,
    )
  await produceAsOthersDo(first.broker, 'shop', produced)
  await sendByCommand(first.broker, sent)
  await post(first.origin, posted)
  await until('all have arrived', async () => (await receiver.count('/crm')).delivered === 3)
  await produceAsOthersDo(first.broker, 'app', waiting)
  await until('it was tried', async () => (await receiver.count('/down')).requests > 0)
  await interruptInGoodOrder(first)

  await receiver.behave('/down', {})
  const second = await up()
  expect(second.said).toContain('All topics are as Sluice needs them.')
  await until('what waited has arrived', async () => (await receiver.count('/down')).delivered === 1)
  await produceAsOthersDo(second.broker, 'shop', last)
  await until('the last has arrived', async () => (await receiver.count('/crm')).delivered === 4)
  await interruptInGoodOrder(second)
  const arrivals = await receiver.arrivals('/crm')
  expect(new Map([...arrivals].map(([messageId, times]) => [messageId, times.length]))).toEqual(
    new Map([produced, sent, posted, last].map((messageId) => [messageId, 1])),
  )
})

test('without a catalog file, destinations are kept in the topic, and commands in the folder find it all', async () => {
  const folderOfOwn = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-up-')))
  const running = await startUp(folderOfOwn)
  started.push(running)
  const { PATH, HOME } = process.env
  const here = { env: { PATH, HOME }, cwd: folderOfOwn }
  const sluice = (args: readonly string[]) => runProgram(inject('program'), args, here)
  const { said } = running
  const [, writeKey = ''] = /curl \S+ -u (\S+): /.exec(said) ?? []
  const [, admin = '', token = ''] =
    /(http:\S+)\/openapi\.json +with Authorization: Bearer (\S+)/.exec(said) ?? []

  expect((await sluice(['destinations', 'list'])).stdout).toContain('has no destinations yet')
  const made = await sluice([
    'destinations',
    'create',
    'mine',
    '--url',
    receiver.url('/mine'),
    '--source',
    'app',
  ])
  expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining('destination/mine: created') })
  await until('the API has it, which takes up to a second', async () => {
    const listed = await fetch(`${admin}/v1/destinations`, { headers: { authorization: `Bearer ${token}` } })
    const { destinations }: { destinations: { id: string }[] } = JSON.parse(await listed.text())
    return destinations.some(({ id }) => id === 'mine')
  })
  const [messageId = ''] = newIds(1)
  await until('the gateway knows the first source', async () => {
    const posted = await fetch(`${running.origin}/v1/track`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}` },
      body: JSON.stringify({ messageId, userId: 'u1', event: 'Hello' }),
    })
    return posted.status === 200
  })
  await until('it has arrived', async () => (await receiver.count('/mine')).delivered === 1)

  expect(await sluice(['topics', 'check'])).toMatchObject({
    code: 0,
    stdout: 'All topics are as Sluice needs them.\n',
  })
  expect(await sluice(['destinations', 'test', 'mine'])).toMatchObject({ code: 0 })
  const link = (await sluice(['console'])).stdout.trim()
  expect(link).toMatch(new RegExp(`^${admin}/console/#code=sluice_code_[\\w-]{43}$`))
  const body = JSON.stringify({ code: link.split('#code=')[1] })
  const signIn = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
  const statuses = [await fetch(`${admin}/v1/session`, signIn), await fetch(`${admin}/v1/session`, signIn)]
  expect(statuses.map(({ status }) => status)).toEqual([204, 401])
  await until('the log knows it', async () =>
    (await sluice(['log', 'find', messageId])).stdout.includes('mine: delivered'),
  )
  const second = await sluice(['up'])
  expect(second.code).toBe(1)
  expect(second.stderr).toContain('`sluice up` runs in this folder already')
  await interruptInGoodOrder(running)
  expect((await sluice(['destinations', 'list'])).stderr).toContain('SLUICE_KAFKA_BROKERS')
  expect(readdirSync(join(folderOfOwn, '.sluice')).toSorted()).toEqual([
    'admin-token',
    'catalog-keys',
    'kafka',
    'log',
    'user-key',
  ])
  rmSync(folderOfOwn, { recursive: true, force: true, maxRetries: 3 })
})

/** Runs `sluice up` in a new folder until it ends by itself, and returns what it says. */
async function failedUp(catalog: string, variables: Record<string, string> = {}): Promise<string> {
  const other = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-up-')))
  writeFileSync(join(other, 'catalog.yaml'), catalog)
  const child = spawn(process.execPath, [inject('program'), 'up'], {
    cwd: other,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      SLUICE_HTTP_PORT: '0',
      SLUICE_GATEWAY_PORT: '0',
      SLUICE_ADMIN_PORT: '0',
      SLUICE_INDEX_PORT: '0',
      ...variables,
    },
  })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  // When the process exits, the end of what it says may still be in the pipe.
  const code = await new Promise((done) => child.once('close', done))
  expect(code).toBe(1)
  expect(processesWith(other)).toEqual([])
  rmSync(other, { recursive: true, force: true, maxRetries: 3 })
  return said
}

test('sluice up with a faulty catalog says so and leaves nothing running', async () => {
  expect(await failedUp('sources: shop\n')).toContain('The catalog catalog.yaml has')
})

test('sluice up says at once, and before Kafka starts, which ports are taken', async () => {
  const servers = [createServer(), createServer()]
  for (const server of servers) await once(server.listen(0, '127.0.0.1'), 'listening')
  const [admin = '', index = ''] = servers.map((server) => String(Object(server.address()).port))
  const said = await failedUp('sources: []\n', { SLUICE_ADMIN_PORT: admin, SLUICE_INDEX_PORT: index })
  expect(said.trim().split('\n')).toEqual([
    expect.stringContaining(`The admin API can not listen on 127.0.0.1:${admin} (EADDRINUSE)`),
    expect.stringContaining(
      `The index of the delivery log can not listen on 127.0.0.1:${index} (EADDRINUSE)`,
    ),
  ])
  for (const server of servers) server.close()
})
