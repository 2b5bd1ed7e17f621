import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { Coordinator } from '../cluster/coordinator.ts'
import { ProduceLink } from '../produce/produce-link.ts'
import type { ProduceOutcome } from '../produce/produce-outcome.ts'
import { describeErrorCode, errorCodes } from '../wire/error-codes.ts'
import { isProtocolError, messageOf } from '../wire/errors.ts'
import { produceRequest, type ProducedTopic, writeProduceRequest } from '../wire/produce-request.ts'
import {
  addPartitionsToTxn,
  commitTxn,
  initProducerId,
  type ProducerIdentity,
} from '../wire/transaction-messages.ts'
import type { WireRequest } from '../wire/wire-request.ts'
import type { PartitionRecords, WrittenRecord } from '../../message/records.ts'

type Place = { readonly topic: string; readonly partition: number }

export type PenOptions = {
  readonly kafka: Kafka
  /** All processes that write to this log have the same id. */
  readonly transactionalId: string
  readonly topic: string
}

/**
 * Reports that a transaction has not written its records, and never will. `isFenced`: another process has
 * taken the pen. `isLate`: Kafka itself has taken it, because the transaction took longer than it may. A
 * quota of the broker may have slowed it down.
 */
export class NotWrittenError extends Error {
  override readonly name = 'NotWrittenError'
  readonly isFenced: boolean
  readonly isLate: boolean
  /** Kafka's error code. `undefined` if no broker has answered. */
  readonly errorCode: number | undefined

  /** True if a topic doesn't exist to which the transaction writes. */
  get lacksTopic(): boolean {
    return this.errorCode === errorCodes.UNKNOWN_TOPIC_OR_PARTITION
  }

  /** True if this program may not write with the transactional id, or to a topic of the transaction. */
  get lacksRight(): boolean {
    return (
      this.errorCode === errorCodes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED ||
      this.errorCode === errorCodes.TOPIC_AUTHORIZATION_FAILED
    )
  }

  constructor(message: string, { isFenced, isLate, errorCode, cause }: NotWrittenOptions = {}) {
    super(message, { cause })
    this.isFenced = isFenced ?? false
    this.isLate = isLate ?? false
    this.errorCode = errorCode
  }
}

type NotWrittenOptions = {
  readonly isFenced?: boolean
  readonly isLate?: boolean
  readonly errorCode?: number | undefined
  readonly cause?: unknown
}

/**
 * Reports that a commit had no answer. Whoever takes the pen next finds out whether the records were written:
 * then they are in the log, or they never will be.
 */
export class UnknownOutcomeError extends Error {
  override readonly name = 'UnknownOutcomeError'
}

/**
 * How long a transaction may take, in milliseconds. If a process ends within one, and nobody takes the pen,
 * readers wait this long for its end.
 */
export const usualTransactionMs = 10_000
/** How long a request to the coordinator is repeated while the coordinator can't answer, in milliseconds. */
const patienceMs = 15_000
const pause = { firstMs: 2, longestMs: 200 } as const
/** The most bytes of keys and values in one batch. A topic takes a batch of 1 MiB by default. */
const maxBatchBytes = 512 * 1024
const timeouts = { replicasTimeoutMs: 5_000, sendTimeoutMs: 8_000 } as const

/** To ask again doesn't help. Brokers say this also when they are asked for the coordinator. */
const forbidden: ReadonlySet<string> = new Set(['TRANSACTIONAL_ID_AUTHORIZATION_FAILED'])

/** The errors that say that another process has taken the pen, or that Kafka has forgotten this holder. */
const lost: ReadonlySet<number> = new Set([
  errorCodes.OUT_OF_ORDER_SEQUENCE_NUMBER,
  errorCodes.INVALID_PRODUCER_EPOCH,
  errorCodes.INVALID_TXN_STATE,
  errorCodes.INVALID_PRODUCER_ID_MAPPING,
  errorCodes.UNKNOWN_PRODUCER_ID,
  errorCodes.PRODUCER_FENCED,
])

/**
 * `sequences`: the sequence number of the next record of each topic. `transactionMs`: how long a transaction
 * may take. `untilMs`: until when the present one may, by `performance.now`.
 */
type Holder = ProducerIdentity & {
  readonly sequences: Map<string, number>
  readonly transactionMs: number
  untilMs: number
}

/**
 * The right to write to a log of one partition. At most one process has it. Who takes the pen, and then reads
 * the log to its stable end, knows all that was ever written: what a former holder hasn't committed by then
 * is never written. So a writer can compare before it writes, without a leader.
 *
 * After an error of `write` or `confirm`, the pen has to be taken again. An open transaction is never aborted
 * by a request, because a late record of it would then open another one. The next `take` aborts it.
 */
export class Pen {
  readonly #options: PenOptions
  readonly #coordinator: Coordinator
  readonly #link: ProduceLink
  #holder: Holder | undefined
  /** The producer of the request that is being built. */
  #writing: Holder | undefined

  constructor(options: PenOptions) {
    const { kafka, transactionalId, topic } = options
    this.#options = options
    this.#coordinator = new Coordinator(kafka, transactionalId, topic, 'transaction')
    this.#link = new ProduceLink(kafka, timeouts, {
      requestOf: (topicData, timeoutMs) => ({
        ...produceRequest(topicData, timeoutMs),
        write: () => this.#batch(topicData, timeoutMs),
      }),
    })
  }

  /** False if the pen has to be taken. True doesn't exclude that another process has taken it since. */
  get isHeld(): boolean {
    return this.#holder !== undefined
  }

  /**
   * Takes the pen. From now on, nobody else who has it can write. `transactionMs`: how long each transaction
   * may take, in milliseconds.
   */
  async take(transactionMs = usualTransactionMs): Promise<void> {
    const { transactionalId } = this.#options
    this.#holder = undefined
    const { errorCode, producerId, producerEpoch } = await this.#ask(
      initProducerId(transactionalId, transactionMs),
    )
    if (errorCode !== errorCodes.NONE) throw refusal('the pen could not be taken', errorCode)
    this.#holder = { producerId, producerEpoch, sequences: new Map(), transactionMs, untilMs: Infinity }
  }

  /**
   * Writes records in one transaction: readers see all of them, or none. `beside`: records of other topics
   * that belong to the same transaction. Returns the offsets of `records`. Throws a `NotWrittenError` or an
   * `UnknownOutcomeError`.
   */
  async write(
    records: readonly WrittenRecord[],
    beside: readonly PartitionRecords[] = [],
  ): Promise<readonly number[]> {
    const own = { topic: this.#options.topic, partition: 0 }
    const holder = await this.#begin([own, ...beside])
    const offsets: number[] = []
    for (const batch of batchesOf(records)) {
      const first = await this.#append(holder, { ...own, records: batch })
      for (const index of batch.keys()) offsets.push(first + index)
    }
    for (const { records: others, ...place } of beside)
      for (const batch of batchesOf(others)) await this.#append(holder, { ...place, records: batch })
    await this.#commit(holder)
    return offsets
  }

  /** Throws a `NotWrittenError` if another process has taken the pen. Writes no record. */
  async confirm(): Promise<void> {
    await this.#commit(await this.#begin([{ topic: this.#options.topic, partition: 0 }]))
  }

  async close(): Promise<void> {
    this.#holder = undefined
    this.#coordinator.close()
    await this.#link.close()
  }

  async #begin(places: readonly Place[]): Promise<Holder> {
    const { transactionalId } = this.#options
    const holder = this.#holder
    if (holder === undefined) throw new NotWrittenError('the pen is not held', { isFenced: true })
    // The pen isn't held again before the transaction has ended without an error.
    this.#holder = undefined
    const { errorCode } = await this.#ask(addPartitionsToTxn(transactionalId, holder, places)).catch(
      (cause: unknown) => {
        throw cause instanceof NotWrittenError ? cause : new NotWrittenError(messageOf(cause), { cause })
      },
    )
    if (errorCode !== errorCodes.NONE) throw refusal('the transaction could not begin', errorCode)
    holder.untilMs = performance.now() + holder.transactionMs
    return holder
  }

  async #append(holder: Holder, item: PartitionRecords): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<ProduceOutcome>()
    this.#writing = holder
    await this.#link.send([item], (_, outcome) => resolve(outcome))
    const outcome = await promise
    if (outcome.isWritten) {
      const { topic, records } = item
      holder.sequences.set(topic, (holder.sequences.get(topic) ?? 0) + records.length)
      return outcome.offset
    }
    const { reason, errorCode } = outcome
    if (errorCode !== undefined) throw refusal(reason, errorCode, holder)
    throw new NotWrittenError(reason)
  }

  async #commit(holder: Holder): Promise<void> {
    const request = commitTxn(this.#options.transactionalId, holder)
    let isAnswered = true
    const { errorCode } = await this.#ask(request, () => (isAnswered = false)).catch((cause: unknown) => {
      throw new UnknownOutcomeError(`the commit had no answer: ${messageOf(cause)}`, { cause })
    })
    if (errorCode === errorCodes.NONE) {
      this.#holder = holder
      return
    }
    if (isAnswered && lost.has(errorCode))
      throw refusal('the transaction was not committed', errorCode, holder)
    // An earlier request, whose answer is missing, may have committed the transaction. A broker that takes a
    // pen away at the same time may also answer UNKNOWN_SERVER_ERROR (seen with Kafka 4.3).
    throw new UnknownOutcomeError(`the commit was answered with ${describeErrorCode(errorCode)}`)
  }

  /**
   * Asks the coordinator. Repeats the request while another transaction of this id ends, or while the
   * coordinator can't be reached. Calls `onUnanswered` before it repeats a request that had no answer.
   */
  async #ask<T extends { readonly errorCode: number }>(
    request: WireRequest<T>,
    onUnanswered: () => void = () => undefined,
  ): Promise<T> {
    const untilMs = performance.now() + patienceMs
    for (let pauseMs: number = pause.firstMs; ; pauseMs = Math.min(2 * pauseMs, pause.longestMs)) {
      const isLast = performance.now() > untilMs
      try {
        const answer = await this.#coordinator.ask(request)
        if (answer.errorCode !== errorCodes.CONCURRENT_TRANSACTIONS || isLast) return answer
      } catch (error) {
        if (isProtocolError(error, forbidden))
          throw new NotWrittenError(messageOf(error), {
            errorCode: errorCodes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            cause: error,
          })
        if (isLast) throw error
        onUnanswered()
      }
      await delay(pauseMs)
    }
  }

  #batch(topicData: readonly ProducedTopic[], timeoutMs: number): Buffer {
    const holder = this.#writing
    if (holder === undefined) throw new Error('a batch is written outside of a transaction')
    const { producerId, producerEpoch, sequences } = holder
    return writeProduceRequest({
      acks: -1,
      timeoutMs,
      topicData: topicData.map(({ topic, partitions }) => ({
        topic,
        partitions: partitions.map((one) => ({ ...one, firstSequence: sequences.get(topic) ?? 0 })),
      })),
      producerId,
      producerEpoch,
      transactionalId: this.#options.transactionalId,
      timestampMs: Date.now(),
    })
  }
}

function refusal(what: string, errorCode: number, holder?: Holder): NotWrittenError {
  const isFenced = lost.has(errorCode)
  const isLate = isFenced && holder !== undefined && performance.now() > holder.untilMs
  const seconds = (holder?.transactionMs ?? 0) / 1_000
  const why = isLate ? `it took longer than ${seconds} s` : 'another process writes'
  return new NotWrittenError(`${what}: ${isFenced ? why : describeErrorCode(errorCode)}`, {
    isFenced,
    isLate,
    errorCode,
  })
}

/** Splits records into batches that a topic takes. A record that is larger than a batch is alone in one. */
function batchesOf(records: readonly WrittenRecord[]): readonly (readonly WrittenRecord[])[] {
  const batches: WrittenRecord[][] = []
  let bytes = Infinity
  for (const record of records) {
    const size = lengthOf(record.key) + lengthOf(record.value)
    if (bytes + size > maxBatchBytes) {
      batches.push([])
      bytes = 0
    }
    batches.at(-1)?.push(record)
    bytes += size
  }
  return batches
}

function lengthOf(data: Buffer | string | null | undefined): number {
  return typeof data === 'string' ? Buffer.byteLength(data) : (data?.length ?? 0)
}
