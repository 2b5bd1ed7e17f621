import { Partitioners } from 'kafkajs'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { encodePause, type Pause } from '../../src/notices/pause-record.ts'
import { otherProgram, testKafka } from './kafka.ts'

/**
 * Writes the record that a worker writes when it pauses a destination. The record goes to the topic `notices`
 * with this prefix, after it has read all of the topic. `urls` is the digest of the destination's URLs. Returns the pause.
 */
export async function writePause(
  destinationId: string,
  {
    prefix,
    brokers = testKafka(),
    urls = 'u',
  }: { prefix: string; brokers?: readonly string[]; urls?: string },
): Promise<Pause> {
  const topic = `${prefix}notices`
  const atMs = Date.now() - 60_000
  const readTo = await withAdmin(otherProgram(brokers), async (admin) => {
    const [partition] = await admin.fetchTopicOffsets(topic)
    return Number(partition?.high)
  })
  const content = { sinceMs: atMs - 5_000, atMs, urls, lastOutcome: 'timeout', readTo }
  const producer = otherProgram(brokers).producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  try {
    const messages = [encodePause({ kind: 'paused', destinationId, content })]
    await producer.send({ topic, messages, acks: -1 })
  } finally {
    await producer.disconnect()
  }
  return content
}
