import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KafkaNode, type RunningKafka, startKafka } from '../../src/development/kafka.ts'
import { partitionOf } from '../../src/message/partitioner.ts'
import { basic, type Reply, startGateway, type TestGateway } from '../support/gateway.ts'
import { otherProgram, readAll } from '../support/kafka.ts'
import { until } from '../support/until.ts'

/**
 * A cluster of three brokers. Each partition has one replica, so it has no leader while its broker is down.
 */
let kafka: RunningKafka
let gateway: TestGateway
let lost: KafkaNode
/** The partitions of `events` and of `deletions` that the broker `lost` leads. */
let lostEvents: ReadonlySet<number>
let lostDeletions: ReadonlySet<number>

const partitions = 6

beforeAll(async () => {
  kafka = await startKafka({ brokers: [], ways: ['java'], count: 3 })
  gateway = await startGateway({
    brokers: kafka.brokers,
    sources: [{ id: 'shop', writeKeys: ['KEY'], serverKeys: ['server-key-of-the-shop'] }],
    variables: { SLUICE_TOPICS_PARTITIONS: String(partitions) },
  })
  // The first broker must stay, because the clients of the test connect to it first.
  const node = kafka.nodes?.[2]
  if (node === undefined) throw new Error('there is no broker to lose')
  lost = node
  lostEvents = await ledBy(node, 'events')
  lostDeletions = await ledBy(node, 'deletions')
})

afterAll(async () => {
  await gateway.stop()
  await kafka.stop()
})

async function ledBy({ id }: KafkaNode, topic: string): Promise<ReadonlySet<number>> {
  const admin = otherProgram(kafka.brokers).admin()
  await admin.connect()
  const { topics } = await admin.fetchTopicMetadata({ topics: [gateway.prefix + topic] })
  await admin.disconnect()
  const led = topics[0]?.partitions
    .filter(({ leader }) => leader === id)
    .map(({ partitionId }) => partitionId)
  return new Set(led)
}

let made = 0

/**
 * Returns a new user. The user's records go to one of the partitions `lostOnes` if `isLost` is true, and to
 * another partition if not.
 */
function userOf(isLost: boolean, lostOnes: ReadonlySet<number>): string {
  for (;;) {
    const id = `user-${made++}`
    if (lostOnes.has(partitionOf(id, partitions)) === isLost) return id
  }
}

function batchOf(users: readonly string[]): object {
  return { batch: users.map((userId) => ({ type: 'track', userId, event: 'E', messageId: `m-${userId}` })) }
}

const healthyUsers = (): string[] => Array.from({ length: 10 }, () => userOf(false, lostEvents))
const mixedUsers = (): string[] => [...healthyUsers(), userOf(true, lostEvents)]

type Client = { statuses: Map<number, number>; acknowledged: string[]; ended: Promise<void> }

/**
 * Starts a client that posts one batch after the other until `stopping` is aborted. Like Segment's clients,
 * it posts a batch again until the answer is 200.
 */
function startClient(users: () => string[], stopping: AbortSignal): Client {
  const client = { statuses: new Map<number, number>(), acknowledged: new Array<string>() }
  const sendOne = async (): Promise<void> => {
    const own = users()
    for (;;) {
      const sentAt = new Date().toISOString()
      const { status } = await gateway.post('/v1/batch', { ...batchOf(own), sentAt }, basic('KEY'))
      client.statuses.set(status, (client.statuses.get(status) ?? 0) + 1)
      if (status === 200) {
        client.acknowledged.push(...own.map((userId) => `m-${userId}`))
        return
      }
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
  const ended = (async () => {
    while (!stopping.aborted) await sendOne()
  })()
  return { ...client, ended }
}

const refused = (topic: string): Promise<number> =>
  gateway.process.metric('sluice_gateway_refused_partitions', { topic: gateway.prefix + topic })

function askToDelete(userId: string): Promise<Reply> {
  return gateway.post('/v1/deletions', { userId }, { authorization: 'Bearer server-key-of-the-shop' })
}

describe('while partitions have no leader', () => {
  test('who has no record for them is answered 200 every time, and nothing of theirs is written twice', async () => {
    expect([lostEvents.size, lostDeletions.size]).toEqual([expect.any(Number), expect.any(Number)])
    expect(lostEvents.size * lostDeletions.size).toBeGreaterThan(0)
    const stopping = new AbortController()
    const healthy = Array.from({ length: 4 }, () => startClient(healthyUsers, stopping.signal))
    const mixed = Array.from({ length: 2 }, () => startClient(mixedUsers, stopping.signal))
    const all = [...healthy, ...mixed]
    await until('all are taken', () => all.every(({ acknowledged }) => acknowledged.length > 100))

    await lost.kill('SIGKILL')
    await until('the lost partitions are refused', async () => {
      return (
        (await refused('events')) === lostEvents.size && (await refused('deletions')) === lostDeletions.size
      )
    })
    expect((await gateway.readiness()).status).toBe(200)
    expect(await gateway.process.metric('sluice_gateway_kafka_unavailable')).toBe(0)
    expect((await askToDelete(userOf(false, lostDeletions))).status).toBe(200)
    const reply = await askToDelete(userOf(true, lostDeletions))
    expect([reply.status, reply.body['code']]).toEqual([503, 'kafka_unavailable'])
    const before = healthy.map(({ acknowledged }) => acknowledged.length)
    await until('they go on', () =>
      healthy.every(({ acknowledged }, index) => acknowledged.length > (before[index] ?? 0) + 500),
    )

    await lost.start()
    await until(
      'all is taken again',
      async () => (await refused('events')) + (await refused('deletions')) === 0,
    )
    const told = gateway.process.log.map(({ msg }) => msg)
    expect(told).toContain(
      'Kafka does not accept records for these partitions: requests with a record for one of them are answered 503 until it does',
    )
    expect(told).toContain('Kafka accepts records for all partitions of this topic again')
    stopping.abort()
    await Promise.all(all.map(({ ended }) => ended))

    const records = await readAll(`${gateway.prefix}events`, { brokers: kafka.brokers })
    const times = new Map<string, number>()
    for (const { key } of records) times.set(`m-${key}`, (times.get(`m-${key}`) ?? 0) + 1)
    const ofHealthy = new Set(
      records.filter(({ partition }) => !lostEvents.has(partition)).map(({ key }) => `m-${key}`),
    )
    const acknowledged = all.flatMap((client) => client.acknowledged)
    const requests = sum(healthy.flatMap(({ statuses }) => [...statuses.values()]))
    const taken = sum(healthy.map(({ statuses }) => statuses.get(200) ?? 0))
    const refusals = sum(mixed.map(({ statuses }) => statuses.get(503) ?? 0))
    const twice = [...times].filter(([id, count]) => count > 1 && ofHealthy.has(id))
    process.stdout.write(
      `${taken} of ${requests} requests for healthy partitions answered 200; of ${acknowledged.length} messages ${twice.length} written twice to healthy partitions; 503 to others: ${refusals}\n`,
    )
    expect(acknowledged.filter((id) => !times.has(id))).toEqual([])
    expect(refusals).toBeGreaterThan(0)
    expect(taken / requests).toBe(1)
    expect(twice).toEqual([])
  })
})

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
