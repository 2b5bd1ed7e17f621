import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KafkaNode, type RunningKafka, startKafka } from '../../../src/development/kafka.ts'
import { basic, startGateway, type TestGateway } from '../../support/gateway.ts'
import { startLoad } from '../../support/gateway-load.ts'
import { otherProgram } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'

/** A Kafka broker that only the tests of this file use, because they stop it. */
let kafka: RunningKafka
let broker: KafkaNode

beforeAll(async () => {
  kafka = await startKafka({ brokers: [], ways: ['java'] })
  const [node] = kafka.nodes ?? []
  if (node === undefined) throw new Error('there is no broker to stop')
  broker = node
})

afterAll(() => kafka.stop())

const message = { type: 'track', userId: 'u1', event: 'E' }
/**
 * The slowest answer in milliseconds. It includes the promised time, and the time that a busy machine may
 * need to transfer the answer.
 */
const slowestMs = 2_000

async function idsIn({ prefix }: TestGateway): Promise<Set<string>> {
  const consumer = otherProgram(kafka.brokers).consumer({ groupId: `${prefix}reader`, maxWaitTimeInMs: 100 })
  const admin = otherProgram(kafka.brokers).admin()
  await Promise.all([consumer.connect(), admin.connect()])
  const topic = `${prefix}events`
  const offsets = await admin.fetchTopicOffsets(topic)
  const missing = new Map(
    offsets.filter(({ high }) => high !== '0').map(({ partition, high }) => [partition, Number(high)]),
  )
  const ids = new Set<string>()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    eachBatch: async ({ batch }) => {
      for (const { value } of batch.messages) ids.add(String(JSON.parse(String(value)).messageId))
      if (Number(batch.lastOffset()) + 1 >= (missing.get(batch.partition) ?? 0))
        missing.delete(batch.partition)
    },
  })
  await until('all is read', () => missing.size === 0)
  await Promise.all([consumer.disconnect(), admin.disconnect()])
  return ids
}

describe.each([
  {
    trouble: 'dies',
    stop: () => broker.kill('SIGKILL'),
    goOn: async (): Promise<void> => broker.start(),
  },
  {
    trouble: 'hangs',
    stop: async (): Promise<void> => {
      process.kill(broker.pid ?? 0, 'SIGSTOP')
    },
    goOn: async (): Promise<void> => {
      process.kill(broker.pid ?? 0, 'SIGCONT')
    },
  },
])('while Kafka $trouble', ({ stop, goOn }) => {
  let gateway: TestGateway

  beforeAll(async () => {
    gateway = await startGateway({
      brokers: kafka.brokers,
      variables: { SLUICE_SHUTDOWN_TIMEOUT: '4s' },
    })
  })

  afterAll(() => gateway.stop())

  test('requests are answered 503 within 2 s, it is not ready, and afterwards it goes on: no 200 is missing', async () => {
    const load = startLoad(gateway.origin)
    await until('messages are taken', () => load.acknowledged.length > 1_000)
    await stop()
    const { text } = await until(
      'it is not ready',
      async () => {
        const readiness = await gateway.readiness()
        return readiness.status === 503 ? readiness : undefined
      },
      { timeoutMs: 10_000 },
    )
    expect(text).toContain('Kafka does not accept messages')
    const startMs = performance.now()
    const reply = await gateway.post('/v1/track', message, basic('KEY'))
    expect(performance.now() - startMs).toBeLessThan(slowestMs)
    expect(reply.status).toBe(503)
    expect(reply.body).toMatchObject({ success: false, code: 'kafka_unavailable' })
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)

    const before = load.acknowledged.length
    await goOn()
    await until('messages are taken again', () => load.acknowledged.length > before + 1_000, {
      timeoutMs: 60_000,
    })
    await until('it is ready', async () => (await gateway.readiness()).status === 200)
    await load.stop()
    expect([...load.statuses.keys()].toSorted((a, b) => a - b)).toEqual([200, 503])
    expect(load.slowestMs).toBeLessThan(slowestMs + 500)
    expect(load.retryAfters.length).toBe(load.statuses.get(503))
    const written = await idsIn(gateway)
    expect(load.acknowledged.filter((id) => !written.has(id))).toEqual([])
  })

  test('SIGTERM ends it in time', async () => {
    await stop()
    const load = startLoad(gateway.origin)
    await until('requests are answered', () => load.statuses.size > 0)
    const { code, tookMs } = await gateway.process.terminate()
    await load.stop()
    await goOn()
    expect(code).toBe(0)
    expect(tookMs).toBeLessThan(4_500)
  })
})

test('without traffic it is found out too that Kafka has gone, and that it is back', async () => {
  const gateway = await startGateway({ brokers: kafka.brokers })
  await broker.kill('SIGKILL')
  await until('it is not ready', async () => (await gateway.readiness()).status === 503, {
    timeoutMs: 30_000,
  })
  await broker.start()
  await until('it is ready', async () => (await gateway.readiness()).status === 200, { timeoutMs: 30_000 })
  const reply = await gateway.post('/v1/track', message, basic('KEY'))
  expect(reply.status).toBe(200)
  await gateway.stop()
})

test('while Kafka is slow no more than the buffer is held, and what is beyond is answered 503 at once', async () => {
  const gateway = await startGateway({
    brokers: kafka.brokers,
    variables: { SLUICE_GATEWAY_BUFFER_BYTES: '16MiB', SLUICE_GATEWAY_ACK_TIMEOUT: '10s' },
  })
  expect((await gateway.post('/v1/track', message, basic('KEY'))).status).toBe(200)
  process.kill(broker.pid ?? 0, 'SIGSTOP')
  const batch = Array.from({ length: 16 }, () => ({ ...message, pad: 'x'.repeat(30_000) }))
  const requests = Array.from({ length: 60 }, async () => {
    const startMs = performance.now()
    const { status, body } = await gateway.post('/v1/batch', { batch }, basic('KEY'))
    return { status, code: body['code'], tookMs: performance.now() - startMs }
  })
  await until('the buffer is full', async () => {
    return (await gateway.process.metric('sluice_gateway_requests_total', { status: '503' })) > 10
  })
  expect(await gateway.process.metric('sluice_gateway_buffered_bytes')).toBeLessThanOrEqual(16 * 1024 ** 2)
  process.kill(broker.pid ?? 0, 'SIGCONT')
  const answers = await Promise.all(requests)
  const refused = answers.filter(({ status }) => status === 503)
  expect(refused.length).toBeGreaterThan(10)
  expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(['overloaded']))
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(10)
  expect(await gateway.process.metric('sluice_gateway_buffered_bytes')).toBe(0)
  await gateway.stop()
})
