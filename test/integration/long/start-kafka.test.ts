import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type KafkaOptions, type RunningKafka, startKafka } from '../../../src/development/kafka.ts'
import { askMetadata } from '../../../src/development/metadata.ts'
import { otherProgram, testKafka } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'

const cleanups: (() => Promise<unknown>)[] = []

afterEach(async () => {
  vi.unstubAllEnvs()
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

async function start(options: KafkaOptions): Promise<RunningKafka> {
  const kafka = await startKafka({ ways: ['java'], ...options })
  cleanups.push(() => kafka.stop())
  return kafka
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  cleanups.push(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}

async function onCluster<T>(
  brokers: readonly string[],
  work: (admin: ReturnType<ReturnType<typeof otherProgram>['admin']>) => Promise<T>,
): Promise<T> {
  const admin = otherProgram(brokers).admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

/** Starts a listener that says nothing, on a free port. Returns the port. */
async function takenPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(async () => server.close())
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return typeof address === 'object' && address !== null ? address.port : 0
}

const answers = (address: string) =>
  askMetadata(address, 1_000).then(
    () => true,
    () => false,
  )

test('a configured Kafka is attached to, and still runs after the stop', async () => {
  const kafka = await startKafka({ brokers: testKafka() })
  expect(kafka).toMatchObject({ way: 'configured', brokers: testKafka() })
  await kafka.stop()
  expect(await answers(testKafka()[0] ?? '')).toBe(true)
})

test('a configured Kafka with one broker that is down is attached to', async () => {
  const brokers = [`127.0.0.1:${await closedPort()}`, ...testKafka()]
  expect(await startKafka({ brokers })).toMatchObject({ way: 'configured', brokers })
})

test('a configured Kafka that does not answer is an error that names its address', async () => {
  const address = `127.0.0.1:${await closedPort()}`
  await expect(startKafka({ brokers: [address], attachTimeoutMs: 300 })).rejects.toThrow(address)
})

test('a configured address where something else listens is not taken for a Kafka', async () => {
  const address = `127.0.0.1:${await takenPort()}`
  await expect(startKafka({ brokers: [address], attachTimeoutMs: 300 })).rejects.toThrow(address)
})

test('without any way the error says what to install', async () => {
  await expect(startKafka({ ways: [] })).rejects.toThrow(
    /KAFKA_BROKERS=.*Docker engine.*apt-get install openjdk-17-jre-headless maven/s,
  )
})

test('the addresses come from KAFKA_BROKERS when none are given', async () => {
  vi.stubEnv('KAFKA_BROKERS', ` ${testKafka().join(' , ')},`)
  expect(await startKafka()).toMatchObject({ way: 'configured', brokers: testKafka() })
})

test('where there is no Java the error says so', async () => {
  vi.stubEnv('PATH', '')
  await expect(startKafka({ ways: ['java'] })).rejects.toThrow('(here: there is no java that runs)')
})

describe('a broker on kept data and a preferred port', () => {
  let dataDir = ''
  let port = 0
  let kafka: RunningKafka

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
    port = await closedPort()
    kafka = await startKafka({ ways: ['java'], dataDir, port })
    await onCluster(kafka.brokers, (admin) => admin.createTopics({ topics: [{ topic: 'kept' }] }))
  })

  afterAll(async () => {
    await kafka.stop()
    await rm(dataDir, { recursive: true, force: true, maxRetries: 3 })
  })

  test('is on that port when it is free', () => {
    expect(kafka).toMatchObject({ way: 'java', brokers: [`127.0.0.1:${port}`] })
    expect(kafka.describe).not.toContain('taken')
  })

  test('refuses a second start on its data, and goes on', async () => {
    const second = startKafka({ ways: ['java'], dataDir })
    await expect(second).rejects.toThrow(`in use: its broker answers at 127.0.0.1:${port}`)
    expect(await answers(`127.0.0.1:${port}`)).toBe(true)
  })

  test('leaves another one a port of its own, which closes at that one’s stop', async () => {
    const other = await start({ port })
    const address = other.brokers[0] ?? ''
    expect(other.describe).toContain(`at ${address}, temporary data; port ${port} was taken`)
    await other.stop()
    expect(await answers(address)).toBe(false)
  })

  test('has its data at the next start, on another port, and is not started as three', async () => {
    await kafka.stop()
    await expect(startKafka({ ways: ['java'], dataDir, count: 3 })).rejects.toThrow(
      'of 1 broker(s), not of 3',
    )
    kafka = await startKafka({ ways: ['java'], dataDir })
    expect(kafka.brokers).not.toEqual([`127.0.0.1:${port}`])
    expect(await onCluster(kafka.brokers, (admin) => admin.listTopics())).toEqual(['kept'])
  })
})

test('a broker that dies at its start is an error with its last words', async () => {
  await expect(startKafka({ ways: ['java'], heapMb: 1 })).rejects.toThrow(/did not start.*heap/is)
})

test('a broker and its temporary data go when the process that started it is killed with SIGKILL', async () => {
  const folder = await temporaryFolder()
  const kafkaModule = JSON.stringify(new URL('../../../src/development/kafka.ts', import.meta.url).href)
  const program = `
    const { startKafka } = await import(${kafkaModule})
    const { brokers } = await startKafka({ ways: ['java'] })
    process.stdout.write(brokers[0])`
  const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: folder },
  })
  const address = await new Promise<string>((resolve) =>
    parent.stdout.once('data', (data) => resolve(String(data))),
  )
  expect(await answers(address)).toBe(true)
  expect(await readdir(folder)).toHaveLength(1)
  parent.kill('SIGKILL')
  await until('the port is closed', async () => !(await answers(address)), { timeoutMs: 15_000 })
  await until('the data is gone', async () => (await readdir(folder)).length === 0)
})
