import { expect, onTestFinished, test } from 'vitest'
import { startSteadyProducer } from '../support/steady-producer.ts'
import { openShop, probe, type Shop, troubleOf } from '../support/shop.ts'
import { until } from '../support/until.ts'

const partitions = [0, 1, 2, 3, 4, 5]
/**
 * The time in milliseconds within which a worker notices a change of its topics. The worker checks the layout
 * of its topics more often than this.
 */
const seenWithinMs = 100_000

async function sendEverywhere(shop: Shop, count: number): Promise<string[]> {
  return (await Promise.all(partitions.map((partition) => shop.send(partition, count)))).flat()
}

/** Deletes `events` and creates it again, empty. */
async function recreateEvents(shop: Shop): Promise<void> {
  const topic = shop.topic('events')
  await shop.admin(async (admin) => {
    await admin.deleteTopics({ topics: [topic] })
    await until('it is gone', async () => !(await admin.listTopics()).includes(topic))
  })
  await shop.applyTopics()
}

test('while events gets more partitions than the layout has, those of the layout go on, retries too, and the others are told and left alone', async () => {
  const shop = await openShop()
  await shop.receiver.behave(shop.path, { failFirstOfEvery: 1 })
  const worker = await shop.start()
  const topic = shop.topic('events')
  await shop.admin((admin) => admin.createPartitions({ topicPartitions: [{ topic, count: 8 }] }))
  const beyond = await shop.send(7, 5)
  await until('it is told', () => troubleOf(worker, { topic, partitions: 8, expected: 6 }).length > 0, {
    timeoutMs: seenWithinMs,
  })
  await shop.untilArrived(await sendEverywhere(shop, 20))
  await until('all are retried', async () => {
    return (await worker.metric('sluice_deliveries_total', { verdict: 'delivered' })) >= 120
  })
  expect(await shop.missing(beyond)).toEqual(beyond)
  expect(await probe(worker, '/livez')).toMatchObject({ status: 200 })
  expect(troubleOf(worker, { topic, partitions: 8 })).toMatchObject([{ level: 'error' }])
})

test('when a retry topic of a ladder of before is deleted, everything else goes on, and nobody makes it again', async () => {
  const shop = await openShop({ variables: { SLUICE_RETRY_LADDER: '3s', SLUICE_RETRY_THEN: '3s' } })
  const ladder = { SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s' }
  await shop.applyTopics(ladder)
  await shop.receiver.behave(shop.path, { failFirstOfEvery: 2 })
  const worker = await shop.start({ variables: ladder })
  await shop.untilArrived(await sendEverywhere(shop, 5))
  const former = shop.topic('retry.3s')
  await shop.admin((admin) => admin.deleteTopics({ topics: [former] }))
  await until('it is told', () => troubleOf(worker, { topic: former }).length > 0, {
    timeoutMs: seenWithinMs,
  })

  const { requests } = await shop.receiver.count(shop.path)
  const ids = await sendEverywhere(shop, 20)
  await until('all are delivered, half of them at the second try', async () => {
    return (await shop.receiver.count(shop.path)).requests >= requests + ids.length * 1.5
  })
  expect((await probe(worker, '/readyz')).status).toBe(200)
  expect(await shop.admin((admin) => admin.listTopics())).not.toContain(former)
  // The worker reports the missing topic once for each partition, or once for the topic. It doesn't report it
  // at each try.
  expect(troubleOf(worker, { topic: former }).length).toBeLessThanOrEqual(partitions.length)
})

test('a topic that is deleted and made again while a worker runs is read from its beginning', async () => {
  const shop = await openShop()
  const worker = await shop.start()
  await shop.untilArrived(await sendEverywhere(shop, 50))
  await recreateEvents(shop)
  await shop.untilArrived(await sendEverywhere(shop, 30), { timeoutMs: 60_000 })
  expect(await worker.metric('sluice_truncations_total', { topic: 'events' })).toBe(partitions.length)
  expect((await probe(worker, '/readyz')).status).toBe(200)
})

test('a topic that was made again and has grown past the position, while the worker hung, is read from its beginning', async () => {
  const shop = await openShop({ variables: { SLUICE_KAFKA_SESSION_TIMEOUT: '60s' } })
  const worker = await shop.start()
  await shop.untilArrived(await sendEverywhere(shop, 20))
  process.kill(worker.pid, 'SIGSTOP')
  onTestFinished(() => {
    if (worker.isRunning) process.kill(worker.pid, 'SIGCONT')
  })
  await recreateEvents(shop)
  const ids = await sendEverywhere(shop, 60)
  process.kill(worker.pid, 'SIGCONT')
  await shop.untilArrived(ids, { timeoutMs: 60_000 })
  expect(await worker.metric('sluice_truncations_total', { topic: 'events' })).toBe(partitions.length)
})

test('a worker that is busy elsewhere is not held up while a topic of its group is deleted and made again', async () => {
  const shop = await openShop()
  await shop.start()
  const producer = await startSteadyProducer({
    topic: shop.topic('events'),
    sourceId: 'shop',
    perSecond: 50,
  })
  const replays = shop.topic('replays')
  await shop.admin((admin) => admin.deleteTopics({ topics: [replays] }))
  await until('a hundred more have come', async () => {
    return (await shop.missing(producer.ids.slice(0, 200))).length === 0 && producer.ids.length > 200
  })
  await until('it is gone', async () => {
    return !(await shop.admin((admin) => admin.listTopics())).includes(replays)
  })
  await shop.applyTopics()
  const atMost = producer.ids.length + 200
  await until('it goes on', async () => {
    return producer.ids.length > atMost && (await shop.missing(producer.ids.slice(0, atMost))).length === 0
  })
  await producer.stop()
  await shop.untilArrived(producer.ids)
  expect((await shop.receiver.count(shop.path)).repeats).toBe(0)
})
