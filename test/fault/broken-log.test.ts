import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type KafkaNode, startKafka } from '../../src/development/kafka.ts'
import { openShop, probe, type Shop, troubleOf } from '../support/shop.ts'
import { until } from '../support/until.ts'

/**
 * Starts a Kafka broker (on Java) that only the calling test uses. The test can read and change its files
 * while the broker is down.
 */
async function startBrokerWithFiles(): Promise<{
  brokers: readonly string[]
  node: KafkaNode
  /** Returns the folder of a partition. */
  folderOf: (topic: string, partition: number) => string
}> {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-kafka-'))
  const kafka = await startKafka({ brokers: [], ways: ['java'], dataDir })
  onTestFinished(async () => {
    await kafka.stop()
    await rm(dataDir, { recursive: true, force: true, maxRetries: 3 })
  })
  const [node] = kafka.nodes ?? []
  if (node === undefined) throw new Error('a broker on Java was started')
  return {
    brokers: kafka.brokers,
    node,
    folderOf: (topic, partition) => join(dataDir, 'broker-1', 'data', `${topic}-${partition}`),
  }
}

const firstSegment = '00000000000000000000.log'

/**
 * Returns the position of each batch in a segment. The length of a batch is in its head, behind the base
 * offset. It counts the bytes that follow the length itself.
 */
function batchStarts(segment: Buffer): number[] {
  const starts: number[] = []
  for (let at = 0; at + 12 <= segment.length; at += 12 + segment.readInt32BE(at + 8)) starts.push(at)
  return starts
}

async function deliverOne(shop: Shop, partition: number): Promise<void> {
  await shop.untilArrived(await shop.send(partition, 1))
}

test('a record that was changed on disk is not delivered; its partition says so, and all others go on', async () => {
  const { brokers, node, folderOf } = await startBrokerWithFiles()
  const shop = await openShop({ brokers })
  const topic = shop.topic('events')
  const [changed = ''] = await shop.send(0, 1)
  const others = (await Promise.all([1, 2, 3, 4, 5].map((partition) => shop.send(partition, 5)))).flat()
  await node.kill('SIGTERM')
  const file = join(folderOf(topic, 0), firstSegment)
  const segment = await readFile(file)
  const at = segment.lastIndexOf(changed)
  segment.write('x', at + changed.length - 1)
  await writeFile(file, segment)
  const altered = `${changed.slice(0, -1)}x`
  await node.start()

  const worker = await shop.start({ isUnready: true })
  await shop.untilArrived(others)
  await deliverOne(shop, 3)
  await until('it is told', () => troubleOf(worker, { topic, partition: 0 }).length > 0)
  expect(await shop.missing([changed, altered])).toEqual([changed, altered])
  expect(await probe(worker, '/livez')).toMatchObject({ status: 200 })
})

const gap = 200_000_000
const mostGrowthBytes = 100 * 1024 * 1024

test('a gap of 200 million offsets is passed over at once, and takes no memory', async () => {
  const { brokers, node, folderOf } = await startBrokerWithFiles()
  const shop = await openShop({ brokers })
  const topic = shop.topic('events')
  const worker = await shop.start()
  await shop.untilArrived(await shop.send(1, 1))
  const usual = await worker.metric('process_resident_memory_bytes')
  await worker.terminate()
  const ids = [...(await shop.send(0, 1)), ...(await shop.send(0, 1))]
  // The broker is killed, so that it reads its files anew at the next start. After a clean shutdown, a broker
  // doesn't check its files.
  await node.kill('SIGKILL')
  await openGap(folderOf(topic, 0))
  await node.start()
  await until('the log ends behind the gap', async () => {
    const ends = await shop.admin((admin) => admin.fetchTopicOffsets(topic))
    return ends.find(({ partition }) => partition === 0)?.high === String(gap + 1)
  })

  // The record before the gap is in flight when the worker gets the record behind the gap.
  await shop.receiver.behave(shop.path, { delayMs: 2_000 })
  const after = await shop.start()
  await shop.untilArrived(ids)
  await until('the end is committed', async () => (await shop.scene.lag()) === 0)
  expect(await after.metric('process_resident_memory_bytes')).toBeLessThan(usual + mostGrowthBytes)
  expect(await shop.receiver.count(shop.path)).toMatchObject({ requests: 3, repeats: 0 })
})

/** Moves all batches except the first to a segment that begins at offset 200 million. */
async function openGap(folder: string): Promise<void> {
  const file = join(folder, firstSegment)
  const segment = await readFile(file)
  const [, second = segment.length] = batchStarts(segment)
  const moved = Buffer.from(segment.subarray(second))
  moved.writeBigInt64BE(BigInt(gap), 0)
  await writeFile(join(folder, `${String(gap).padStart(20, '0')}.log`), moved)
  await writeFile(file, segment.subarray(0, second))
  for (const index of ['index', 'timeindex'])
    await rm(join(folder, firstSegment.replace('log', index)), { force: true })
}
