import type { Config } from '../config/schema.ts'
import type { createKafka } from '../kafka/client.ts'
import { type CopyProducer, startCopyProducer } from '../kafka/copy-writer.ts'
import { askKafka } from './ask-kafka.ts'

/** Calls `work` with a producer, and stops the producer afterwards. */
export async function withProducer<T>(
  { config, kafka }: { readonly config: Config; readonly kafka: ReturnType<typeof createKafka> },
  work: (producer: CopyProducer) => Promise<T>,
): Promise<T> {
  const producer = await askKafka(config, startCopyProducer(kafka, { batchBytes: config.kafka.batchBytes }))
  try {
    return await work(producer)
  } finally {
    await producer.stop()
  }
}
