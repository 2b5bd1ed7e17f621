import type { Kafka } from 'kafkajs'
import { type ProducerRecord, type RecordProducer, sizeOf, startProducer, whileAnyFails } from './producer.ts'
import { whileProgressing } from '../../async/within.ts'

export type CopiedRecord = Omit<ProducerRecord, 'topic'> & { readonly partition: number }

/**
 * A writer of records to one topic. The records of a partition are written in the order of the calls, with
 * the given times.
 */
export type CopyWriter = {
  /**
   * Adds a record. Resolves when there is room for a further record. Rejects when Kafka has accepted no
   * record for a minute, or will never accept a record.
   */
  write(record: CopiedRecord): Promise<void>
  /** Resolves when all in-sync replicas have all records. Rejects like `write`. */
  flush(): Promise<void>
}

export type CopyProducer = {
  to(topic: string): CopyWriter
  stop(): Promise<void>
}

/** The most bytes of records that may wait for their acknowledgement. */
const mostBytes = 8 * 1024 ** 2
const takeTimeoutMs = 60_000

/**
 * Starts a producer of copies. If the answer to a request is lost, the request is sent again, and its records
 * may be written twice.
 *
 * @param batchBytes the most bytes of records in one batch. A larger record is sent in a batch of its own.
 */
export async function startCopyProducer(
  kafka: Kafka,
  { batchBytes }: { batchBytes: number },
): Promise<CopyProducer> {
  let trouble = ''
  const producer = await startProducer({
    kafka,
    batchBytes,
    // A copied record came from Kafka, so a broker can take its bytes.
    maxRecordBytes: Infinity,
    onFailing: whileAnyFails((_isFailing, reason) => {
      trouble = reason
    }),
  })
  return {
    to: (topic) => new BoundedWriter(topic, producer, () => trouble),
    stop: () => producer.stop(),
  }
}

class BoundedWriter implements CopyWriter {
  readonly #topic: string
  readonly #producer: RecordProducer
  readonly #trouble: () => string
  readonly #waiting = new Set<Promise<void>>()
  #bytes = 0
  #ended = 0
  #room = Promise.withResolvers<void>()
  #refused: string | undefined

  constructor(topic: string, producer: RecordProducer, trouble: () => string) {
    this.#topic = topic
    this.#producer = producer
    this.#trouble = trouble
  }

  async write(record: CopiedRecord): Promise<void> {
    const bytes = sizeOf(record)
    this.#bytes += bytes
    const written = this.#producer.produce({ ...record, topic: this.#topic }).then((result) => {
      if (result === 'refused')
        this.#refused ??= `${this.#topic}/${record.partition} does not accept a record of ${bytes} bytes: it is larger than max.message.bytes`
      this.#waiting.delete(written)
      this.#ended++
      this.#bytes -= bytes
      if (this.#bytes < mostBytes) this.#room.resolve()
    })
    this.#waiting.add(written)
    if (this.#bytes < mostBytes) return
    this.#room = Promise.withResolvers()
    await this.#inTime(this.#room.promise)
  }

  flush(): Promise<void> {
    return this.#inTime(Promise.all(this.#waiting))
  }

  async #inTime(work: Promise<unknown>): Promise<void> {
    const isDone = await whileProgressing(takeTimeoutMs, work, {
      progress: () => this.#ended,
      readsFromMs: () => this.#producer.readsFromMs,
    })
    if (!isDone)
      throw new Error(
        `Kafka accepted nothing in ${takeTimeoutMs / 1000} s (topic ${this.#topic}): ${this.#trouble()}`,
      )
    if (this.#refused !== undefined) throw new Error(this.#refused)
  }
}
