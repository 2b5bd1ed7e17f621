import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Scene, setScene } from '../e2e/scene.ts'
import { otherProgram, testKafka } from '../support/kafka.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { findOnPath } from '../support/debian.ts'
import { here, installed } from './installed.ts'

/**
 * Tests of Sluice's Go client under load, with Go's race detector and a real gateway. Each call that the
 * client has accepted has to be in Kafka.
 */

const goroutines = 1_000
/** `loadCalls` of clients/go/race_on_test.go. */
const calls = 200
const writeKey = 'key-of-the-load'
const mostLoadMs = 280_000

let scene: Scene
let gateway: SluiceProcess

beforeEach(async () => {
  scene = await setScene({
    catalog: { sources: [{ id: 'load', writeKeys: [writeKey] }], destinations: [] },
  })
  gateway = await startSluice(scene.variables, { role: 'gateway' })
})

afterEach(async () => {
  if (gateway.isRunning) await gateway.kill()
  scene.close()
})

/**
 * Runs the Go client's own test that makes the calls. Rejects if the client has refused a call, or has
 * reported it as failed.
 */
async function makeCalls(): Promise<void> {
  const name = 'TestAThousandGoroutinesWithAThousandCallsLoseNothing'
  const child = spawn(
    installed(findOnPath('go')),
    ['test', '-race', '-count=1', '-v', `-run=^${name}$`, '.'],
    {
      cwd: join(here, '../../clients/go'),
      env: { ...process.env, SLUICE_TEST_GATEWAY: `http://${writeKey}@127.0.0.1:${gateway.gatewayPort}` },
    },
  )
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const timer = setTimeout(() => child.kill('SIGKILL'), mostLoadMs)
  const code = await new Promise((resolve) => child.once('close', resolve))
  clearTimeout(timer)
  if (code !== 0 || !said.includes(`--- PASS: ${name}`))
    throw new Error(`go test ended with ${String(code)}:\n${said}`)
}

/**
 * Returns how often the topic holds each message of the load. The index is the number of the goroutine, times
 * `calls`, plus the number of the call.
 */
async function timesWritten(): Promise<Uint8Array> {
  const topic = `${scene.prefix}events`
  const kafka = otherProgram(testKafka())
  const [admin, consumer] = [kafka.admin(), kafka.consumer({ groupId: `${scene.prefix}reader` })]
  await Promise.all([admin.connect(), consumer.connect()])
  const ends = await admin.fetchTopicOffsets(topic)
  const unread = new Map(ends.map(({ partition, high }) => [partition, Number(high)]))
  const times = new Uint8Array(goroutines * calls)
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    eachBatch: async ({ batch }) => {
      for (const { value } of batch.messages) {
        const [, goroutine = '', number = ''] = /"messageId":"load-(\d+)-(\d+)"/.exec(String(value)) ?? []
        const index = Number(goroutine) * calls + Number(number)
        times[index] = (times[index] ?? 0) + 1
      }
      if (Number(batch.lastOffset()) + 1 >= (unread.get(batch.partition) ?? 0)) unread.delete(batch.partition)
    },
  })
  await until('all is read', () => unread.size === 0, { timeoutMs: 120_000, everyMs: 250 })
  await Promise.all([admin.disconnect(), consumer.disconnect()])
  return times
}

function missingIn(times: Uint8Array): number {
  return times.filter((count) => count === 0).length
}

function repeatedIn(times: Uint8Array): number {
  return times.filter((count) => count > 1).length
}

test('of 1,000 goroutines with 200 calls each every call is in Kafka, once', async () => {
  await makeCalls()
  const times = await timesWritten()
  expect([missingIn(times), repeatedIn(times)]).toEqual([0, 0])
  expect(await gateway.metric('sluice_gateway_messages_total')).toBe(goroutines * calls)
}, 600_000)

test('and though the gateway is killed in the middle and started again: every call is in Kafka', async () => {
  const { gatewayPort } = gateway
  const ended = makeCalls()
  // The promise is awaited below. An error before that must not end the test's process.
  ended.catch(() => undefined)
  for (const part of [0.2, 0.5]) {
    const enough = part * goroutines * calls
    await until('a part has been taken', async () => (await endOfTopic()) > enough, {
      timeoutMs: mostLoadMs,
      everyMs: 100,
    })
    await gateway.kill()
    gateway = await startSluice(
      { ...scene.variables, SLUICE_GATEWAY_PORT: String(gatewayPort) },
      { role: 'gateway' },
    )
  }
  await ended
  const times = await timesWritten()
  expect(missingIn(times)).toBe(0)
  // Each kill loses the answers of up to 8 requests in flight, with 250 messages each. The client sends these
  // messages again.
  expect(repeatedIn(times)).toBeLessThanOrEqual(2 * 8 * 250)
}, 600_000)

/** Returns the number of records in the topic. */
async function endOfTopic(): Promise<number> {
  const admin = otherProgram(testKafka()).admin()
  await admin.connect()
  const ends = await admin.fetchTopicOffsets(`${scene.prefix}events`)
  await admin.disconnect()
  return ends.reduce((sum, { high }) => sum + Number(high), 0)
}
