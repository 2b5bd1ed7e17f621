import { expect, test } from 'vitest'
import { openShop, probe, type Shop, troubleOf } from '../support/shop.ts'
import { until } from '../support/until.ts'

const perPartition = 40
const partitions = [0, 1, 2, 3, 4, 5]

async function sendEverywhere(shop: Shop, count = perPartition): Promise<string[]> {
  return (await Promise.all(partitions.map((partition) => shop.send(partition, count)))).flat()
}

/** Starts a worker, delivers 40 messages of each partition, and stops the worker, which commits them. */
async function deliverAndStop(shop: Shop): Promise<void> {
  const worker = await shop.start()
  await shop.untilArrived(await sendEverywhere(shop))
  await worker.terminate()
}

/**
 * Sets the group's offsets far beyond the end of each partition. This is how the group stands after a log was
 * restored from an older copy.
 */
async function standBeyondTheEnd(shop: Shop): Promise<void> {
  const { SLUICE_KAFKA_GROUP_ID: groupId = '' } = shop.scene.variables
  const seeks = partitions.map((partition) => ({ partition, offset: '1000' }))
  await shop.admin((admin) => admin.setOffsets({ groupId, topic: shop.topic('events'), partitions: seeks }))
}

test('records that retention deleted before they were delivered are counted and told with their range; what is left is delivered', async () => {
  const shop = await openShop()
  await deliverAndStop(shop)
  const lost = await shop.send(2, 30)
  const kept = await shop.send(2, 20)
  const topic = shop.topic('events')
  await shop.admin(async (admin) => {
    // After this call, the client knows the leaders of the topic.
    await admin.fetchTopicOffsets(topic)
    await admin.deleteTopicRecords({
      topic,
      partitions: [{ partition: 2, offset: String(perPartition + 30) }],
    })
  })
  const worker = await shop.start()
  await shop.untilArrived(kept)
  expect(await shop.missing(lost)).toEqual(lost)
  await until('they are counted', async () => {
    return (await worker.metric('sluice_records_lost_total', { topic: 'events' })) === 30
  })
  const lines = troubleOf(worker, { topic, partition: 2 })
  expect(lines).toMatchObject([
    {
      level: 'error',
      msg: 'records were deleted from Kafka before they were read, and are lost: retention is shorter than this worker was away or behind',
      from: perPartition,
      to: perPartition + 30,
    },
  ])
})

const otherLog =
  'the log of a partition is not the one that was read before: its topic was recreated or restored, or a broker lost records; kafka.onTruncation decides what follows'

test('where the log ends before what the group has read, all that is in it is delivered, and it is told', async () => {
  const shop = await openShop()
  await deliverAndStop(shop)
  await standBeyondTheEnd(shop)
  const ids = await sendEverywhere(shop)
  const worker = await shop.start()
  await shop.untilArrived(ids)
  await until('it is counted', async () => {
    return (await worker.metric('sluice_truncations_total', { topic: 'events' })) === partitions.length
  })
  for (const partition of partitions)
    expect(troubleOf(worker, { topic: shop.topic('events'), partition })).toMatchObject([{ msg: otherLog }])
})

test('with `kafka.onTruncation` stop such a partition stands still, says so, and the others go on', async () => {
  const shop = await openShop({ variables: { SLUICE_KAFKA_ON_TRUNCATION: 'stop' } })
  await deliverAndStop(shop)
  const { SLUICE_KAFKA_GROUP_ID: groupId = '' } = shop.scene.variables
  const topic = shop.topic('events')
  await shop.admin((admin) =>
    admin.setOffsets({ groupId, topic, partitions: [{ partition: 3, offset: '1000' }] }),
  )
  const held = await shop.send(3, 5)
  const worker = await shop.start({ isUnready: true })
  const others = await Promise.all([0, 1, 2, 4, 5].map((partition) => shop.send(partition, 5)))
  await shop.untilArrived(others.flat())
  expect(await shop.missing(held)).toEqual(held)
  const { status, text } = await probe(worker, '/readyz')
  expect(status).toBe(503)
  expect(text).toContain(topic)
  expect(text).toContain('3')
  expect(troubleOf(worker, { topic, partition: 3 })).toMatchObject([{ level: 'error', msg: otherLog }])
  expect(await worker.metric('sluice_partitions_in_trouble', { topic: 'events' })).toBe(1)
})
