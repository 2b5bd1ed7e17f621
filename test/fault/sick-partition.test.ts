import { expect, onTestFinished, test } from 'vitest'
import { openShop, probe, type Shop, troubleOf } from '../support/shop.ts'
import { startThreeBrokers, type ThreeBrokers } from '../support/three-brokers.ts'
import { until } from '../support/until.ts'
import type { SluiceProcess } from '../support/worker-process.ts'

/**
 * Tests in which one partition of the only retry topic loses its broker. Each partition of this topic is on
 * only one broker. So a failed delivery of the unit with the same number can't be parked. All other topics
 * are on three brokers.
 */

const units = [0, 1, 2, 3, 4, 5]
const sickUnit = 4
const otherUnits = units.filter((unit) => unit !== sickUnit)
const sickBroker = 3
const threeCopies = {
  SLUICE_TOPICS_DEVELOPMENT: 'false',
  SLUICE_TOPICS_REPLICATION: '3',
  SLUICE_TOPICS_MIN_INSYNC: '2',
  SLUICE_KAFKA_SESSION_TIMEOUT: '60s',
}
const oneCopy = { SLUICE_TOPICS_REPLICATION: '1', SLUICE_TOPICS_MIN_INSYNC: '1' }

type Scene = { cluster: ThreeBrokers; shop: Shop; workers: readonly SluiceProcess[]; topic: string }

/**
 * Opens a scene with `count` workers. Every message fails at its first attempt, and is delivered at the
 * second.
 */
async function open(count = 1): Promise<Scene> {
  const cluster = await startThreeBrokers()
  const shop = await openShop({ brokers: cluster.brokers, variables: threeCopies })
  const topic = shop.topic('retry.1s')
  await shop.admin((admin) => admin.deleteTopics({ topics: [topic] }))
  await until('it is gone', () => shop.admin(async (admin) => !(await admin.listTopics()).includes(topic)))
  const replicas = units.map((unit) => (unit === sickUnit ? [sickBroker] : [1 + (unit % 2)]))
  await cluster.createTopic(topic, replicas, { 'min.insync.replicas': '1' })
  await shop.applyTopics(oneCopy)
  await shop.receiver.behave(shop.path, { failFirstOfEvery: 1 })
  const workers: SluiceProcess[] = []
  while (workers.length < count) workers.push(await shop.start({ variables: oneCopy }))
  await untilTried(shop, await sendTo(shop, units, 10), 2)
  return { cluster, shop, workers, topic }
}

async function sendTo(shop: Shop, to: readonly number[], count: number): Promise<string[]> {
  return (await Promise.all(to.map((unit) => shop.send(unit, count)))).flat()
}

/** Waits until other brokers lead `events`. Before that, Kafka refuses new messages. */
async function untilLedByOthers(shop: Shop): Promise<void> {
  await until(
    'other brokers lead events',
    () =>
      shop.admin(async (admin) => {
        const { topics } = await admin.fetchTopicMetadata({ topics: [shop.topic('events')] })
        return topics[0]?.partitions.every(({ leader }) => leader >= 0 && leader !== sickBroker)
      }),
    { timeoutMs: 60_000 },
  )
}

/** Returns how often each message has arrived. */
async function triesOf({ receiver, path }: Shop, ids: readonly string[]): Promise<number[]> {
  const arrivals = await receiver.arrivals(path)
  return ids.map((id) => arrivals.get(id)?.length ?? 0)
}

async function untilTried(shop: Shop, ids: readonly string[], times: number): Promise<void> {
  await until(
    `each was tried ${times} times`,
    async () => (await triesOf(shop, ids)).every((tries) => tries >= times),
    { timeoutMs: 60_000 },
  )
}

async function failing({ workers }: Pick<Scene, 'workers'>): Promise<number> {
  const counts = workers.map((worker) =>
    worker.metric('sluice_produce_partitions_failing', { topic: 'retry.1s' }),
  )
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

const aboutWrites = 'Kafka does not accept records for this partition'

function said({ workers }: Scene, place: { topic: string; partition: number }): number {
  return workers.flatMap((worker) => troubleOf(worker, { ...place, msg: aboutWrites })).length
}

/**
 * Does the steps that are the same whether the broker dies or hangs. Returns the messages of the sick unit
 * that were sent before it stood still (`tried`) and after (`untried`).
 */
async function trialOf(scene: Scene): Promise<{ tried: string[]; untried: string[] }> {
  const { shop, workers, topic } = scene
  await untilLedByOthers(shop)
  const tried = await sendTo(shop, [sickUnit], 20)
  await untilTried(shop, tried, 1)
  await untilTried(shop, await sendTo(shop, otherUnits, 100), 2)
  await until('it says so', async () => (await failing(scene)) === 1)
  await until('its log does', () => said(scene, { topic, partition: sickUnit }) === 1)
  const untried = await sendTo(shop, [sickUnit], 300)
  for (let round = 0; round < 4; round++) await untilTried(shop, await sendTo(shop, otherUnits, 100), 2)
  expect(await failing(scene)).toBe(1)
  for (const worker of workers) {
    expect(await worker.metric('sluice_produce_stalled')).toBe(0)
    expect((await probe(worker, '/readyz')).status).toBe(200)
  }
  expect(new Set(await triesOf(shop, untried))).toEqual(new Set([0]))
  expect(new Set(await triesOf(shop, tried))).toEqual(new Set([1]))
  return { tried, untried }
}

async function untilWorkedOff(scene: Scene, ids: readonly string[]): Promise<void> {
  await untilTried(scene.shop, ids, 2)
  await until('it says so', async () => (await failing(scene)) === 0)
  await until('all is committed', async () => (await scene.shop.scene.lag()) === 0, { timeoutMs: 60_000 })
}

test('while the broker of one partition of a retry topic is dead its unit stands still, all others deliver and retry; it goes on when the broker is back', async () => {
  const scene = await open()
  const { cluster, shop } = scene
  await cluster.node(sickBroker).kill('SIGKILL')
  const { tried, untried } = await trialOf(scene)
  await cluster.node(sickBroker).start()
  const ids = [...tried, ...untried]
  await untilWorkedOff(scene, ids)
  // The outage of the partition has used up no try of any message.
  expect(new Set(await triesOf(shop, ids))).toEqual(new Set([2]))
})

test('while the broker of one partition of a retry topic hangs its unit stands still, all others deliver and retry; it goes on when the broker does', async () => {
  const scene = await open()
  const { pid } = scene.cluster.node(sickBroker)
  if (pid === undefined) throw new Error('the broker does not run')
  process.kill(pid, 'SIGSTOP')
  onTestFinished(() => void process.kill(pid, 'SIGCONT'))
  const { tried, untried } = await trialOf(scene)
  process.kill(pid, 'SIGCONT')
  await untilWorkedOff(scene, [...tried, ...untried])
  expect(scene.workers.every(({ isRunning }) => isRunning)).toBe(true)
})

test('a worker that stops while a unit stands still loses nothing of it, and the next owner of the unit lets it stand still as well', async () => {
  const scene = await open(2)
  const { cluster, shop, workers } = scene
  await cluster.node(sickBroker).kill('SIGKILL')
  const { tried, untried } = await trialOf(scene)
  const [first, second] = workers
  if (first === undefined || second === undefined) throw new Error('there are not two workers')
  const [owner, next] = (await failing({ workers: [first] })) === 1 ? [first, second] : [second, first]
  expect((await owner.terminate()).code).toBe(0)
  const left = { ...scene, workers: [next] }
  await until('it says so', async () => (await failing(left)) === 1, { timeoutMs: 60_000 })
  await untilTried(shop, await sendTo(shop, otherUnits, 100), 2)
  await cluster.node(sickBroker).start()
  await untilWorkedOff(left, [...tried, ...untried])
  expect(next.isRunning).toBe(true)
})
