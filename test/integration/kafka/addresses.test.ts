import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts } from '../../../src/development/free-ports.ts'
import { type SingleBroker, startSingleBroker } from '../../support/single-broker.ts'
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
