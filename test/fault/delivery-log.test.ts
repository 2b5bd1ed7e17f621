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

/** The log is on broker 3 alone, and all else on all of them. */
async function openScene(): Promise<{
  cluster: ThreeBrokers
  shop: Shop
  worker: SluiceProcess
  topic: string
}> {
  const cluster = await startThreeBrokers()
  const shop = await openShop({ brokers: cluster.brokers, variables: threeCopies })
  const topic = shop.topic('attempts')
  await shop.admin((admin) => admin.deleteTopics({ topics: [topic] }))
  await until('it is gone', () => shop.admin(async (admin) => !(await admin.listTopics()).includes(topic)))
  await cluster.createTopic(
    topic,
    partitions.map(() => [3]),
    {},
  )
  const worker = await shop.start({ variables: { SLUICE_ATTEMPTS_BUFFER_BYTES: '64KiB' } })
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
  // The other topics have leaders on the brokers that are left, and so has the group its coordinator.
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
}, 240_000)
