import type { Config } from '../../config/schema.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { type ProducerRecord, startProducer, whileAnyFails } from '../../kafka/produce/producer.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { maxRetryRecordBytes } from '../../topics/topic-list.ts'
import { whileProgressing } from '../../async/within.ts'
import { askKafka, openKafka } from '../start/ask-kafka.ts'
import { StartError } from '../start/start-error.ts'

type Log = Parameters<typeof createKafka>[1]

/**
 * The longest wait for an acknowledgement, in milliseconds. This is longer than it takes to replace a broker.
 */
const takeTimeoutMs = 60_000

/** The writer of records for a command. */
export type Writer = {
  /**
   * Writes records. Resolves once all in-sync replicas have all of them. Rejects with a StartError if Kafka
   * takes none of the records for a minute, or will never take them. A throttle that a broker has announced
   * doesn't count. The message of the error ends with `advice()`. Some of the records may have been written
   * by then.
   */
  write(records: readonly ProducerRecord[], advice: () => string): Promise<void>
  stop(): Promise<void>
}

/**
 * Opens a writer. Calls `say` when Kafka stops taking records, and again when Kafka takes records again. In
 * between, the writer waits.
 */
export async function openWriter(
  config: Config,
  log: Log,
  role: KafkaRole,
  say: (line: string) => void,
): Promise<Writer> {
  const producer = await askKafka(
    config,
    startProducer({
      kafka: await openKafka(config, log, role),
      maxRecordBytes: maxRetryRecordBytes(config.message.maxBytes),
      onFailing: whileAnyFails((isFailing, reason) =>
        say(
          isFailing ? `Kafka does not accept the records yet: ${reason}` : 'Kafka accepts the records again',
        ),
      ),
    }),
  )
  return {
    async write(records, advice) {
      const topic = records[0]?.topic ?? ''
      let taken = 0
      const all = Promise.all(records.map((record) => producer.produce(record).finally(() => taken++)))
      const waited = { progress: () => taken, readsFromMs: () => producer.readsFromMs }
      if (!(await whileProgressing(takeTimeoutMs, all, waited)))
        throw new StartError(
          `Kafka accepted nothing in ${takeTimeoutMs / 1000} s (topic ${topic}). ${advice()}`,
        )
      const results = await all
      if (results.includes('refused')) {
        throw new StartError(
          `A record is too large for ${topic}: \`sluice topics apply\` raises its max.message.bytes. ${advice()}`,
        )
      }
    },
    stop: () => producer.stop(),
  }
}
