import { setTimeout as passTime } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type KafkaNode, type RunningKafka, startKafka } from '../../src/development/kafka.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { newIds, type Scene, setScene } from './scene.ts'

/** A broker of this file's own, since it is stopped. */
let kafka: RunningKafka
let broker: KafkaNode
let receiver: CountingReceiver
let scene: Scene
let worker: SluiceProcess

beforeAll(async () => {
  kafka = await startKafka({ brokers: [], ways: ['java'] })
  const [node] = kafka.nodes ?? []
  if (node === undefined) throw new Error('there is no broker to stop')
  broker = node
})

afterAll(() => kafka.stop())

const failing = 'failing'
const shutdownMs = 4_000
const variables = {
  SLUICE_RETRY_LADDER: '1s',
  SLUICE_RETRY_THEN: '1s',
  SLUICE_SHUTDOWN_TIMEOUT: `${shutdownMs}ms`,
}

beforeEach(async () => {
  receiver = await startCountingReceiver()
  await receiver.behave('/failing', { status: 500, delayMs: 50 })
  scene = await setScene({
    brokers: kafka.brokers,
    catalog: {
      sources: [{ id: 'shop' }, { id: 'app' }],
      destinations: [
        { id: failing, sources: ['shop'], maxInFlight: 20, hooks: [{ url: receiver.url('/failing') }] },
        { id: 'healthy', sources: ['shop', 'app'], hooks: [{ url: receiver.url('/healthy') }] },
      ],
    },
    variables,
  })
  worker = await startSluice(scene.variables)
})

afterEach(async () => {
  if (worker.isRunning) await worker.kill()
  scene.close()
  await receiver.stop()
})

async function readiness(): Promise<{ status: number; text: string }> {
  const response = await fetch(`http://127.0.0.1:${worker.httpPort}/readyz`)
  return { status: response.status, text: await response.text() }
}

const notReady = () => until('it is not ready', async () => (await readiness()).status === 503)

/** Looks on for a time in which nothing may be tried, and says how many requests came all the same. */
async function attemptsDuring(ms: number): Promise<number> {
  const before = (await receiver.count('/failing')).requests
  await passTime(ms)
  return (await receiver.count('/failing')).requests - before
}

async function allArrives(ids: readonly string[]): Promise<void> {
  await receiver.behave('/failing', {})
  await until('all has arrived', async () => (await receiver.count('/failing')).delivered === ids.length, {
    timeoutMs: 60_000,
  })
  await until('all is committed', async () => (await scene.lag()) === 0, { timeoutMs: 60_000, everyMs: 250 })
  expect((await receiver.count('/healthy')).delivered).toBe(ids.length)
  expect(worker.isRunning).toBe(true)
  expect((await readiness()).status).toBe(200)
}

/** Some are on the retry topic, and more are tried all the time. */
async function underWay(): Promise<string[]> {
  const ids = newIds(2_000)
  await scene.send('shop', ids)
  await until('some have been tried', async () => (await receiver.count('/failing')).requests > 200)
  return ids
}

test('a broker that dies stops all attempts, and when it is back the worker goes on by itself', async () => {
  const ids = await underWay()
  await broker.kill('SIGKILL')
  await notReady()
  expect((await readiness()).text).toMatch(/Kafka does not take what is produced|not joined/)
  await until('what was in flight is over', async () => (await receiver.count('/failing')).inFlight === 0)
  expect(await attemptsDuring(12_000)).toBe(0)
  await broker.start()
  await until('it is ready', async () => (await readiness()).status === 200, { timeoutMs: 60_000 })
  await allArrives(ids)
})

test('a broker that hangs stops all attempts, and when it goes on so does the worker', async () => {
  const ids = await underWay()
  const { pid = -1 } = broker
  process.kill(pid, 'SIGSTOP')
  try {
    await notReady()
    await until('what was in flight is over', async () => (await receiver.count('/failing')).inFlight === 0)
    expect(await attemptsDuring(12_000)).toBe(0)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  await until('it is ready', async () => (await readiness()).status === 200, { timeoutMs: 60_000 })
  await allArrives(ids)
})

test.each([
  ['is dead', 'SIGKILL'],
  ['hangs', 'SIGSTOP'],
] as const)('SIGTERM ends the worker in time while the broker %s', async (_state, signal) => {
  await underWay()
  const { pid = -1 } = broker
  if (signal === 'SIGKILL') await broker.kill(signal)
  else process.kill(pid, signal)
  try {
    await notReady()
    const { code, tookMs } = await worker.terminate()
    expect(code).toBe(0)
    expect(tookMs).toBeLessThan(shutdownMs + 1_000)
  } finally {
    if (signal === 'SIGKILL') await broker.start()
    else process.kill(pid, 'SIGCONT')
  }
})
