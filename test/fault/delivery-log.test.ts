import { expect, test } from 'vitest'
import { readLog } from '../support/delivery-log.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { startThreeBrokers, type ThreeBrokers } from '../support/three-brokers.ts'
import { until } from '../support/until.ts'
import type { SluiceProcess } from '../support/worker-process.ts'

const partitions = [0, 1, 2, 3, 4, 5]
const threeCopies = {
  SLUICE_TOPICS_DEVELOPMENT: 'false',
  SLUICE_TOPICS_REPLICATION: '3',
  SLUICE_TOPICS_MIN_INSYNC: '2',
  SLUICE_TOPICS_CHECK: 'off',
}

type Scene = { cluster: ThreeBrokers; shop: Shop; worker: SluiceProcess; topic: string }

/**
 * Opens a scene in which only the brokers in `replicas` have the delivery log, by default broker 3 alone. All
 * other topics are on all three brokers.
 */
async function openScene(
  replicas: readonly (readonly number[])[] = partitions.map(() => [3]),
  variables: Record<string, string> = {},
): Promise<Scene> {
  const cluster = await startThreeBrokers()
  const shop = await openShop({ brokers: cluster.brokers.slice(0, 2), variables: threeCopies })
  const topic = shop.topic('attempts')
  await shop.admin((admin) => admin.deleteTopics({ topics: [topic] }))
  await until('it is gone', () => shop.admin(async (admin) => !(await admin.listTopics()).includes(topic)))
  await cluster.createTopic(topic, replicas)
  const worker = await shop.start({ variables: { SLUICE_ATTEMPTS_BUFFER_BYTES: '64KiB', ...variables } })
  return { cluster, shop, worker, topic }
}

async function deliver(shop: Shop, count: number): Promise<void> {
  const sent = await Promise.all(partitions.map((partition) => shop.send(partition, count)))
  await shop.untilArrived(sent.flat())
}

test('deliveries go on while the broker of the log is gone, what is dropped is counted, and the log goes on when it is back', async () => {
  const { cluster, shop, worker, topic } = await openScene()
  await deliver(shop, 10)
  await until('it is logged', async () => (await worker.metric('sluice_log_records_total')) > 0)
  await cluster.node(3).kill('SIGKILL')
  const delivered = (): Promise<boolean> =>
    deliver(shop, 10).then(
      () => true,
      () => false,
    )
  // From now on, the other topics have leaders on the two brokers that are left, and one of these is the
  // coordinator of the group.
  await until('Kafka takes records again', delivered, { timeoutMs: 90_000 })
  const before = await worker.metric('sluice_deliveries_total', { verdict: 'delivered' })
  for (let round = 0; round < 10; round++) await deliver(shop, 50)
  expect((await worker.metric('sluice_deliveries_total', { verdict: 'delivered' })) - before).toBe(3_000)
  expect(await worker.metric('sluice_produce_stalled')).toBe(0)
  expect(worker.isRunning).toBe(true)
  await until('what is dropped is counted', async () => {
    return (await worker.metric('sluice_log_records_dropped_total')) > 0
  })
  const told = worker.log.filter(({ msg }) => msg.startsWith('the delivery log is not written'))
  expect(told.length).toBe(1)

  await cluster.node(3).start()
  await until('the log is written again', async () => {
    await deliver(shop, 1)
    return worker.log.some(({ msg }) => msg === 'the delivery log is written again')
  })
  expect((await readLog(topic, cluster.brokers)).length).toBeGreaterThan(0)
})

/** Moves all topics except the delivery log from broker 3 to the other brokers. */
async function leaveBrokerThree({ shop, topic }: Scene): Promise<void> {
  await shop.admin(async (admin) => {
    const all = new Set([...(await admin.listTopics()), '__consumer_offsets'])
    const others = [...all].filter((name) => name !== topic)
    const { topics } = await admin.fetchTopicMetadata({ topics: others })
    await admin.alterPartitionReassignments({
      topics: topics.map(({ name, partitions: moved }) => ({
        topic: name,
        partitionAssignment: moved.map(({ partitionId }) => ({
          partition: partitionId,
          replicas: partitionId % 2 === 0 ? [1, 2] : [2, 1],
        })),
      })),
    })
    await until(
      'no other topic is on broker 3',
      async () => {
        const now = await admin.fetchTopicMetadata({ topics: others })
        return now.topics.every(({ partitions: moved }) =>
          moved.every(({ leader, replicas }) => leader !== 3 && !replicas.includes(3)),
        )
      },
      { timeoutMs: 60_000 },
    )
  })
}

test('while a broker of the log hangs, deliveries take no longer, the log of the other brokers is whole, and what is dropped is counted', async () => {
  // Partitions 0 to 2 of the delivery log are on the broker that hangs.
  const replicas = partitions.map((partition) => (partition < 3 ? [3] : [1]))
  const scene = await openScene(replicas, {
    SLUICE_ATTEMPTS_SUCCESSES: '1000000',
    SLUICE_ATTEMPTS_BUFFER_BYTES: '1MiB',
  })
  const { cluster, shop, worker, topic } = scene
  await deliver(shop, 10)
  await until('it is logged', async () => (await worker.metric('sluice_log_records_total')) >= 60)
  await leaveBrokerThree(scene)
  // By delivering, the worker learns where the other topics are now.
  for (let round = 0; round < 3; round++) {
    await deliver(shop, 10)
    await until('it is committed', async () => (await shop.scene.lag()) === 0)
  }
  const before = await until('all is logged', async () => {
    const written = await worker.metric('sluice_log_records_total')
    return written >= 240 ? written : undefined
  })
  const { pid } = cluster.node(3)
  if (pid === undefined) throw new Error('broker 3 does not run')
  process.kill(pid, 'SIGSTOP')
  try {
    // This is longer than the worker waits for an answer.
    const untilMs = Date.now() + 15_000
    let slowestMs = 0
    let rounds = 0
    while (Date.now() < untilMs) {
      const startedMs = Date.now()
      await deliver(shop, 50)
      slowestMs = Math.max(slowestMs, Date.now() - startedMs)
      rounds++
    }
    expect(slowestMs).toBeLessThan(5_000)
    expect(await worker.metric('sluice_produce_stalled')).toBe(0)
    const healthy = rounds * 3 * 50
    await until('the log of the other broker has all', async () => {
      const written = await worker.metric('sluice_log_records_total')
      if (written >= before + healthy) return true
      const dropped = await Promise.all(
        ['full', 'refused', 'unknown'].map((reason) =>
          worker.metric('sluice_log_records_dropped_total', { reason }),
        ),
      )
      throw new Error(`${written} of ${before + healthy} after ${rounds} rounds; dropped ${dropped.join()}`)
    })
    await until('what is dropped is counted', async () => {
      return (await worker.metric('sluice_log_records_dropped_total')) > 0
    })
    process.kill(pid, 'SIGCONT')
    await until('the log is written again', async () => {
      await deliver(shop, 1)
      return worker.log.some(({ msg }) => msg === 'the delivery log is written again')
    })
    const units = (await readLog(topic, cluster.brokers)).map(({ unit }) => unit)
    expect(units.filter((unit) => unit >= 3).length).toBeGreaterThanOrEqual(healthy)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
})
