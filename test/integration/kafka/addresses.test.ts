import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { freePorts } from '../../../src/development/free-ports.ts'
import { startProducer } from '../../../src/kafka/produce/producer.ts'
import { createTopic, randomPrefix, readAll, testKafka } from '../../support/kafka.ts'
import { startSilentBroker } from '../../support/silent-broker.ts'
import { type SingleBroker, startSingleBroker } from '../../support/single-broker.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import { runToEnd } from '../../support/worker-process.ts'

// Addresses of brokers: those that somebody sets, and those that brokers give themselves.

let broker: SingleBroker
let named = 0
let ipv6 = 0

beforeAll(async () => {
  ;[named = 0, ipv6 = 0] = await freePorts(2)
  const protocol = 'PLAINTEXT'
  const listeners = [
    { name: 'NAMED', protocol, port: named, advertisedHost: 'kafka-0.kafka.invalid' },
    { name: 'IPV6', protocol, port: ipv6, host: '[::1]' },
  ] as const
  broker = await startSingleBroker({ extra: { listeners } })
})

afterAll(() => broker?.stop())

test('a broker can have an IPv6 address', async () => {
  const variables = { KAFKA_BROKERS: `[::1]:${ipv6}`, SLUICE_TOPICS_DEVELOPMENT: 'true' }
  const { code, stdout } = await runToEnd(['topics', 'apply'], variables)
  expect(stdout).toContain('created    sluice.events')
  expect(code).toBe(0)
})

test.each([
  ['topics', 'check'],
  ['send', '--source', 'shop', '{"type":"track","userId":"u1","event":"E"}'],
])(
  'sluice %s says that brokers give themselves a name that nobody knows here, and does not try again',
  async (...args) => {
    const startMs = performance.now()
    const { code, stderr } = await runToEnd(args, { KAFKA_BROKERS: `127.0.0.1:${named}` })
    expect(stderr).toContain(
      `Kafka answers at 127.0.0.1:${named}, but this machine can not resolve the name of kafka-0.kafka.invalid:${named}`,
    )
    expect(stderr).toContain('advertised.listeners')
    expect(code).toBe(1)
    // Before, it took half a minute.
    expect(performance.now() - startMs).toBeLessThan(20_000)
  },
)

test('an address that falls silent after its first answer is used no more, while another one works', async () => {
  const [live = ''] = testKafka()
  const silent = await startSilentBroker({ upstream: live })
  onTestFinished(() => silent.stop())
  const topic = `${randomPrefix()}events`
  await createTopic(topic, { partitions: 1 })
  for (const key of ['first', 'second']) {
    const kafka = workerKafka({ brokers: [silent.address, live] })
    const producer = await startProducer({ kafka, maxRecordBytes: 10_000 })
    const record = { topic, partition: 0, key: Buffer.from(key), value: Buffer.from('v'), headers: {} }
    expect(await producer.produce(record)).toBe('acknowledged')
    await producer.stop()
  }
  expect((await readAll(topic)).map(({ key }) => key)).toEqual(['first', 'second'])
  expect(silent.accepted).toBe(1)
})
