import { Partitioners } from 'kafkajs'
import { encodePause, type Pause } from '../../src/notices/pause-record.ts'
import { otherProgram, testKafka } from './kafka.ts'

/**
 * Writes the record that a worker writes when it pauses a destination. The record goes to the topic `notices`
 * with this prefix. `urls` is the digest of the destination's URLs. Returns the pause.
 */
export async function writePause(
  destinationId: string,
  {
    prefix,
    brokers = testKafka(),
    urls = 'u',
  }: { prefix: string; brokers?: readonly string[]; urls?: string },
): Promise<Pause> {
  const atMs = Date.now() - 60_000
  const content = { sinceMs: atMs - 5_000, atMs, urls, lastOutcome: 'timeout', readTo: 0 }
  const producer = otherProgram(brokers).producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  try {
    const messages = [encodePause({ kind: 'paused', destinationId, content })]
    await producer.send({ topic: `${prefix}notices`, messages, acks: -1 })
  } finally {
    await producer.disconnect()
  }
  return content
}
