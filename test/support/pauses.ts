import { Partitioners } from 'kafkajs'
import { encodePause, type Pause } from '../../src/notices/pause-record.ts'
import { otherProgram, testKafka } from './kafka.ts'

/** Writes what a worker writes that pauses a destination: to the topic `notices` of a prefix. Returns it. */
export async function writePause(
  destinationId: string,
  { prefix, brokers = testKafka() }: { prefix: string; brokers?: readonly string[] },
): Promise<Pause> {
  const atMs = Date.now() - 60_000
  const content = { sinceMs: atMs - 5_000, atMs, urls: 'u', lastOutcome: 'timeout', readTo: 0 }
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
