import { afterAll, beforeAll, expect, test } from 'vitest'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { startProducer } from '../../src/kafka/produce/producer.ts'
import { createPartitionReader } from '../../src/kafka/read/partition-reader.ts'
import { openOwner } from '../integration/waiting/queue-owner.ts'
import { countRecords, otherProgram, randomPrefix } from '../support/kafka.ts'
import { type ProxiedKafka, startProxiedKafka } from '../support/proxied-kafka.ts'
import { startToxiproxy, type Toxiproxy } from '../support/toxiproxy.ts'
import { until } from '../support/until.ts'
import { workerKafka } from '../support/worker-kafka.ts'

/** The queue of a unit, when Kafka has appended records and its answer never arrives. */

/** The time limit of the start, in milliseconds. The first start downloads and builds Toxiproxy. */
const mostBuildMs = 10 * 60_000

let toxiproxy: Toxiproxy
let kafka: ProxiedKafka

beforeAll(async () => {
  toxiproxy = await startToxiproxy()
  kafka = await startProxiedKafka(toxiproxy)
}, mostBuildMs)

afterAll(async () => {
  await kafka?.stop()
  await toxiproxy?.stop()
})

test('records whose acknowledgement was lost are appended again, and each is delivered once, by this owner and the next', async () => {
  const prefix = randomPrefix()
  const of = { topic: `${prefix}waiting`, marksTopic: `${prefix}waiting-marks` }
  await withAdmin(otherProgram(kafka.direct), async (admin) => {
    await admin.createTopics({
      topics: [
        { topic: of.topic },
        { topic: of.marksTopic, configEntries: [{ name: 'cleanup.policy', value: 'compact' }] },
      ],
    })
  })
  const producer = await startProducer({
    kafka: workerKafka({ brokers: kafka.proxied }),
    maxRecordBytes: 100_000,
    onStalled() {},
  })
  const reader = createPartitionReader(workerKafka({ brokers: kafka.direct }), { keepsOpen: true })
  try {
    const first = await openOwner({ reader, producer }, of)
    await first.append('a', 'before')
    const proxy = kafka.proxyOf(1)
    await proxy.add({ stream: 'downstream', type: 'timeout', attributes: { timeout: 0 } })
    const ids = Array.from({ length: 50 }, (_, index) => `lost-${index}`)
    const appended = Promise.all(ids.map((id) => first.append('a', id)))
    await until('Kafka has some of them', async () => (await countRecords(of.topic, kafka.direct)) > 1)
    await proxy.disable()
    await proxy.heal()
    await appended
    expect(await countRecords(of.topic, kafka.direct)).toBeGreaterThan(1 + ids.length)
    const code = first.owners.codeOf('a', 'fresh')
    await until('it knows all', () => first.queue.untakenOf(code) === 1 + ids.length)
    expect(await first.next('a')).toBe('before')
    const second = await openOwner({ reader, producer }, of)
    expect(await second.drain('a')).toEqual(['before', ...ids])
    await second.queue.close()
    expect(await first.drain('a')).toEqual(ids)
    await first.queue.close()
  } finally {
    await Promise.all([producer.stop(), reader.stop()])
  }
})
