import { expect, onTestFinished, test } from 'vitest'
import { openShop, probe, type Shop } from '../support/shop.ts'
import { startThreeBrokers, type ThreeBrokers } from '../support/three-brokers.ts'
import { until } from '../support/until.ts'
import { runSluice, startSluice } from '../support/worker-process.ts'

/** Tests that a worker, a gateway and `sluice topics check` start while partitions have no leader. */

const oneCopy = {
  SLUICE_TOPICS_DEVELOPMENT: 'false',
  SLUICE_TOPICS_REPLICATION: '1',
  SLUICE_TOPICS_MIN_INSYNC: '1',
}
const partitions = [0, 1, 2, 3, 4, 5]
/** The partitions that only broker 3 has. */
const offline = [2, 5]
const online = [0, 1, 3, 4]

async function openOnThree(cluster: ThreeBrokers, topicOf: (shop: Shop) => string): Promise<Shop> {
  const three = {
    SLUICE_TOPICS_DEVELOPMENT: 'false',
    SLUICE_TOPICS_REPLICATION: '3',
    SLUICE_TOPICS_MIN_INSYNC: '2',
  }
  const shop = await openShop({ brokers: cluster.brokers, variables: three })
  const topic = topicOf(shop)
  await shop.admin(async (admin) => {
    if ((await admin.listTopics()).includes(topic)) await admin.deleteTopics({ topics: [topic] })
  })
  await until('it is gone', () => shop.admin(async (admin) => !(await admin.listTopics()).includes(topic)))
  await cluster.createTopic(topic, [[1], [2], [3], [1], [2], [3]], { 'min.insync.replicas': '1' })
  await shop.applyTopics(oneCopy)
  await cluster.untilInSync(shop.scene.prefix)
  return shop
}

async function killThird(cluster: ThreeBrokers, shop: Shop, topic: string): Promise<void> {
  await cluster.node(3).kill('SIGKILL')
  await until('it has partitions without a leader', () =>
    shop.admin(async (admin) => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      return topics[0]?.partitions.filter(({ leader }) => leader < 0).length === offline.length
    }),
  )
}

test('a worker, a gateway and sluice topics check start while two partitions of events have no leader', async () => {
  const cluster = await startThreeBrokers()
  const shop = await openOnThree(cluster, (own) => own.topic('events'))
  const topic = shop.topic('events')
  // These messages are sent before the broker is killed. The test's client can't send to a topic of which a
  // partition has no leader.
  const sent = (await Promise.all(online.map((partition) => shop.send(partition, 20)))).flat()
  await killThird(cluster, shop, topic)

  const worker = await shop.start({ variables: oneCopy })
  await shop.untilArrived(sent)
  const gateway = await startSluice(
    { ...shop.scene.variables, ...oneCopy, SLUICE_GATEWAY_HOST: '127.0.0.1', SLUICE_GATEWAY_PORT: '0' },
    { role: 'gateway' },
  )
  onTestFinished(() => gateway.kill())
  expect(await probe(gateway, '/livez')).toMatchObject({ status: 200 })
  await runSluice(['topics', 'check'], { ...shop.scene.variables, ...oneCopy })
  await until('the lag of those that have a leader is told', async () => {
    return (await worker.metric('sluice_group_lag_records', { topic: 'events' })) === 0
  })

  await cluster.node(3).start()
  const later = (await Promise.all(partitions.map((partition) => shop.send(partition, 10)))).flat()
  await shop.untilArrived(later, { timeoutMs: 60_000 })
})

test('a worker starts while a topic of somebody else has no leader', async () => {
  const cluster = await startThreeBrokers()
  const shop = await openOnThree(cluster, () => 'foreign')
  await killThird(cluster, shop, 'foreign')
  await shop.start()
  const sent = (await Promise.all(partitions.map((partition) => shop.send(partition, 5)))).flat()
  await shop.untilArrived(sent)
  expect(await shop.missing(sent)).toEqual([])
})
