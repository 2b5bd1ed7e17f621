import type { HeldRecord, RecordContent } from '../message/held-record.ts'
import { type ReceivedHeaders, sourceIdOf } from '../message/record-headers.ts'
import {
  type RetryHeaders,
  encodeRetryState,
  firstSeenOf,
  salvageRetryHeaders,
} from '../retry/retry-state.ts'
import { formatWait } from '../retry/duration.ts'
import type { BufferAccount } from './buffer-account.ts'
import type { BackfillNeeds } from './needs-backfill.ts'
import type { Delivery, PendingRecord } from './delivery.ts'
import type { DeadReason } from '../message/dead-letter-reasons.ts'
import {
  type ParkReason,
  type PipelineOptions,
  type DropReason,
  type IdentifyToDeliver,
  formsOf,
  type OutboundRecord,
  type QueueClass,
  type WaitingQueue,
} from './pipeline-ports.ts'
import type { OrderingKeys } from './ordering-keys.ts'

type ExitsOptions = Pick<
  PipelineOptions,
  'catalog' | 'topics' | 'observer' | 'outlet' | 'tracing' | 'now'
> & {
  readonly account: BufferAccount
  readonly backfillNeeds: BackfillNeeds
  readonly orderingKeys: OrderingKeys<Delivery>
}

/**
 * Returns the headers that a dead letter takes from the headers of its refused record, and `first-seen`.
 * `timestampMs` is the time of the record.
 */
export type KeepHeaders = (headers: ReceivedHeaders, timestampMs: number) => RetryHeaders

const tooLarge = {
  reason: 'record_too_large',
  detail: 'the record is too large for the topic in which it has to wait',
} as const

/** Ends deliveries: settles them, or writes them to a retry topic or to the dead letters. Holds no state. */
export class Exits {
  readonly #options: ExitsOptions

  constructor(options: ExitsOptions) {
    this.#options = options
  }

  /** Ends a delivery that succeeded or must not be sent. */
  settle(delivery: Delivery): void {
    this.#options.orderingKeys.leave(delivery)
    delivery.complete()
  }

  /** Leaves the delivery to the next owner of its record. */
  leaveBehind(delivery: Delivery): void {
    this.#options.orderingKeys.leave(delivery)
    delivery.abandon()
  }

  /**
   * Leaves a delivery to the next owner if another one of its record was left to it. The next owner then
   * makes this one too, so what is written of it here would be a repeat. Only a delivery of which the record
   * doesn't say that it is uncertain must be written in any case.
   */
  #isLeftBehind(delivery: Delivery): boolean {
    const isLeft = delivery.pending.isVoid && !delivery.isNewlyUncertain
    if (isLeft) this.leaveBehind(delivery)
    return isLeft
  }

  drop(delivery: Delivery, why: DropReason): void {
    if (!delivery.isDelivered) this.#options.observer.dropped(delivery, why)
    this.settle(delivery)
  }

  /** Writes the delivery to the retry topic in which records wait for `waitMs`. */
  retry(delivery: Delivery, waitMs: number, why: ParkReason): void {
    if (this.#isLeftBehind(delivery)) return
    const { topics, observer } = this.#options
    observer.parked(delivery, why, waitMs)
    void this.#produce(delivery, topics.retryPrefix + formatWait(waitMs), headersOf(delivery))
  }

  /** Writes the delivery to the end of its destination's queue. Its clock stands while it waits there. */
  queue(delivery: Delivery, queue: WaitingQueue, queueClass: QueueClass, why: ParkReason): void {
    if (this.#isLeftBehind(delivery)) return
    const { observer, now } = this.#options
    observer.parked(delivery, why, 0)
    delivery.copyBytes()
    const { pending, destinationId, key, body } = delivery
    const record = { key, value: body, headers: stoppedClock(headersOf(delivery), delivery, now()) }
    void this.#write(delivery, record, () => queue.append(pending.record, destinationId, queueClass, record))
  }

  deadLetter(delivery: Delivery, reason: DeadReason, detail: string): void {
    if (this.#isLeftBehind(delivery)) return
    const { topics, observer, backfillNeeds } = this.#options
    observer.deadLettered(reason, detail, delivery.pending.record, delivery)
    backfillNeeds.tellOf(delivery)
    void this.#produce(delivery, topics.deadLetters, { ...headersOf(delivery), reason, detail })
  }

  /**
   * Writes a record to the dead letters, because no delivery can be made from the record. The dead letter has
   * the record's key and value, and the headers that `keep` selects.
   */
  refuse(
    record: HeldRecord,
    { key, value, headers }: RecordContent,
    { reason, detail }: { readonly reason: DeadReason; readonly detail: string },
    keep: KeepHeaders = record.topic === this.#options.topics.events ? keptOfProducer : keptOfWorker,
  ): PendingRecord {
    const { account, topics, observer, tracing } = this.#options
    observer.deadLettered(reason, detail, record, undefined)
    const { topic, partition, offset, timestampMs } = record
    const pending = account.hold(record, 0, (key?.length ?? 0) + (value?.length ?? 0))
    const letter: OutboundRecord = {
      topic: topics.deadLetters,
      partition,
      // The bytes are copied. Otherwise the buffer of a whole fetch would stay in memory while Kafka accepts
      // no records.
      key: key === null ? null : Buffer.from(key),
      value: value === null ? null : Buffer.from(value),
      headers: {
        ...keep(headers, timestampMs),
        ...tracing?.headersOf(record),
        reason,
        detail,
        origin: `${topic}/${partition}/${offset}`,
      },
    }
    account.settleAfter(this.#writeDeadLetter(letter), pending)
    return pending
  }

  /**
   * Writes an Identify to the dead letters, because its space isn't in the catalog any more. The dead letter
   * has all fields that a replay needs.
   */
  refuseIdentify(
    record: HeldRecord,
    { userId, spaceId, property, since, messageId, body }: IdentifyToDeliver,
  ): PendingRecord {
    const headers = {
      'source-id': spaceId,
      'message-id': messageId,
      'message-type': 'identify',
      property: JSON.stringify([userId, spaceId, property]),
      since,
    }
    const content = { key: Buffer.from(userId), value: body, headers }
    const detail = `the catalog has no audience space ${quote(spaceId)}`
    return this.refuse(record, content, { reason: 'unknown_source', detail }, (made, timestampMs) => ({
      ...salvageRetryHeaders(made),
      'first-seen': timeText(timestampMs),
    }))
  }

  #produce(delivery: Delivery, topic: string, headers: RetryHeaders): Promise<void> {
    const { topics, outlet } = this.#options
    const { pending, key, body } = delivery
    const record = { topic, partition: pending.record.partition, key, value: body, headers }
    return this.#write(delivery, record, async () => {
      if (topic !== topics.deadLetters) return outlet.produce(record)
      await this.#writeDeadLetter(record)
      return 'acknowledged'
    })
  }

  /**
   * Ends a delivery once `write` has written its record. If the record is too large for its topic, it becomes
   * a dead letter.
   */
  async #write(
    delivery: Delivery,
    { key, value, headers }: Pick<OutboundRecord, 'key' | 'value' | 'headers'>,
    write: () => Promise<'acknowledged' | 'refused'>,
  ): Promise<void> {
    const { account, backfillNeeds, observer, orderingKeys, topics } = this.#options
    const { pending } = delivery
    pending.begin()
    account.begin()
    orderingKeys.leave(delivery)
    if ((await write()) === 'refused') {
      const { reason, detail } = tooLarge
      observer.deadLettered(reason, detail, pending.record, delivery)
      backfillNeeds.tellOf(delivery)
      const { partition } = pending.record
      const letter = {
        topic: topics.deadLetters,
        partition,
        key,
        value,
        headers: { ...headers, reason, detail },
      }
      await this.#writeDeadLetter(letter)
    }
    delivery.complete()
    account.end()
  }

  /**
   * Writes a dead letter. If the broker refuses the letter as too large, leaves out parts of it and tries
   * again. Resolves once the broker has accepted the letter.
   */
  async #writeDeadLetter(letter: OutboundRecord): Promise<void> {
    for (const form of formsOf(letter)) {
      if (await this.#isTaken(form)) return
    }
    // The process ends here, because otherwise the record would be lost. At the next start, the check of the
    // topics reports the wrong setting of the topic.
    throw new Error(`${letter.topic} does not accept even a small record: see its max.message.bytes`)
  }

  async #isTaken(record: OutboundRecord): Promise<boolean> {
    return (await this.#options.outlet.produce(record)) === 'acknowledged'
  }
}

/** Replaces the end of the delivery's time by the time that is left of it, because its clock stands. */
function stoppedClock(headers: RetryHeaders, { expiresAtMs }: Delivery, nowMs: number): RetryHeaders {
  if (expiresAtMs === 0) return headers
  return { ...headers, 'expires-at': '0', 'time-left': String(Math.max(0, expiresAtMs - nowMs)) }
}

function headersOf(delivery: Delivery): RetryHeaders {
  const headers = encodeRetryState(delivery)
  return delivery.trace === undefined ? headers : { ...headers, ...delivery.trace.headers }
}

/**
 * Keeps the source of a record that a producer has written. All other headers are dropped. If a producer
 * sends headers that only workers write, such as `replay-job` or `first-seen`, nobody believes them.
 */
export function keptOfProducer(headers: ReceivedHeaders, timestampMs: number): RetryHeaders {
  const sourceId = sourceIdOf(headers)
  return {
    ...(sourceId !== undefined && salvageRetryHeaders({ 'source-id': sourceId })),
    'first-seen': timeText(timestampMs),
  }
}

/**
 * Keeps the known headers of a record of a topic that only workers write. Renames the header `origin` to
 * `carried-origin`, because the dead letter gets another `origin`, which names the record of this topic.
 */
function keptOfWorker(headers: ReceivedHeaders, timestampMs: number): RetryHeaders {
  const { origin, ...kept } = salvageRetryHeaders(headers)
  const firstSeen = { 'first-seen': timeText(firstSeenOf(headers, timestampMs)) }
  return { ...kept, ...firstSeen, ...(origin !== undefined && { 'carried-origin': origin }) }
}

/** Writes a time for a header. A producer can date its record before 1970. */
function timeText(ms: number): string {
  return String(Math.max(0, ms))
}

/** The longest id that the catalog allows, in characters. */
const maxQuotedCharacters = 100

/** Quotes an id from a record, for a sentence of a dead letter. */
export function quote(id: string): string {
  if (id.length <= maxQuotedCharacters) return JSON.stringify(id)
  return `${JSON.stringify(id.slice(0, maxQuotedCharacters))}…, whose id is too long`
}
