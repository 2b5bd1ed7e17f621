import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { ReceivedHeaders } from '../message/record-headers.ts'
import { type CarriedHeaders, encodeCarried, salvageCarried } from '../retry/carried.ts'
import { formatWait } from '../retry/duration.ts'
import type { Account } from './account.ts'
import type { Delivery, HeldRecord, PendingRecord } from './delivery.ts'
import type { DropReason, IdentifyToDeliver } from './identify.ts'
import { formsOf, type OutboundRecord } from './outbound-record.ts'
import type { DeadReason } from '../message/dead-letter-reasons.ts'
import type { ParkReason, PipelineOptions, RecordContent } from './pipeline-ports.ts'
import type { OrderingKeys } from './ordering-keys.ts'

type ExitsOptions = Pick<
  PipelineOptions,
  'catalog' | 'topics' | 'observer' | 'outlet' | 'onBehind' | 'tracing'
> & {
  readonly account: Account
  readonly orderingKeys: OrderingKeys<Delivery>
}

/** Which headers of a refused record its dead letter keeps. */
export type KeepHeaders = (headers: ReceivedHeaders) => CarriedHeaders

const tooLarge = {
  reason: 'record_too_large',
  detail: 'the record is too large for its retry topic',
} as const

/**
 * The ways out of the pipeline: settled, on a retry topic, in the dead letters. Holds no state of its own.
 */
export class Exits {
  readonly #options: ExitsOptions

  constructor(options: ExitsOptions) {
    this.#options = options
  }

  /** The delivery has come to its end, and nothing more is to be done for it. */
  settle(delivery: Delivery): void {
    this.#options.orderingKeys.leave(delivery)
    delivery.complete()
  }

  /** Leaves the delivery to the next owner of its record. */
  leaveBehind(delivery: Delivery): void {
    this.#options.orderingKeys.leave(delivery)
    delivery.abandon()
  }

  drop(delivery: Delivery, why: DropReason): void {
    if (!delivery.isDelivered) this.#options.observer.dropped(delivery, why)
    this.settle(delivery)
  }

  /** Puts the delivery on the retry topic of that wait. */
  retry(delivery: Delivery, waitMs: number, why: ParkReason): void {
    const { topics, observer } = this.#options
    observer.parked(delivery, why, waitMs)
    void this.#produce(delivery, topics.retryPrefix + formatWait(waitMs), headersOf(delivery))
  }

  deadLetter(delivery: Delivery, reason: DeadReason, detail: string): void {
    const { topics, observer } = this.#options
    observer.deadLettered(reason, detail, delivery.pending.record, delivery)
    this.missed(delivery)
    void this.#produce(delivery, topics.deadLetters, { ...headersOf(delivery), reason, detail })
  }

  /**
   * Puts a record that can't be delivered to anybody into the dead letters as it is, with the headers that
   * are known.
   */
  refuse(
    record: HeldRecord,
    { key, value, headers }: RecordContent,
    { reason, detail }: { readonly reason: DeadReason; readonly detail: string },
    keep: KeepHeaders = record.topic === this.#options.topics.events ? keptOfEvent : keptOfCarried,
  ): PendingRecord {
    const { account, topics, observer, tracing } = this.#options
    observer.deadLettered(reason, detail, record, undefined)
    const { topic, partition, offset, timestampMs } = record
    const pending = account.hold(record, 0, (key?.length ?? 0) + (value?.length ?? 0))
    const letter: OutboundRecord = {
      topic: topics.deadLetters,
      partition,
      // Copies, so that no fetch is kept while Kafka takes nothing.
      key: key === null ? null : Buffer.from(key),
      value: value === null ? null : Buffer.from(value),
      headers: {
        ...keep(headers),
        ...tracing?.headersOf(record),
        reason,
        detail,
        origin: `${topic}/${partition}/${offset}`,
        'first-seen': String(Math.max(0, timestampMs)),
      },
    }
    account.settleAfter(this.#writeDeadLetter(letter), pending)
    return pending
  }

  /** Refuses an Identify whose space is none any more, with all that a replay of it needs. */
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
    return this.refuse(record, content, { reason: 'unknown_source', detail }, salvageCarried)
  }

  /** The destination of the delivery missed a value of a property: it needs a backfill. */
  missed({ destinationId, property, pending }: Delivery): void {
    if (property === undefined) return
    const reported = this.#options.onBehind?.(destinationId, property.spaceId)
    if (reported !== undefined) this.#options.account.settleAfterNote(reported, pending)
  }

  /**
   * The destinations that are connected to a space and don't get a value of it need a backfill. Resolve: that
   * is on record.
   */
  missedBy(
    connected: readonly DestinationDefinition[],
    routed: readonly DestinationDefinition[],
    spaceId: string,
  ): readonly Promise<void>[] {
    return connected.flatMap((destination) => {
      const reported = routed.includes(destination)
        ? undefined
        : this.#options.onBehind?.(destination.id, spaceId)
      return reported ?? []
    })
  }

  async #produce(delivery: Delivery, topic: string, headers: CarriedHeaders): Promise<void> {
    const { account, observer, orderingKeys, topics } = this.#options
    const { pending, key, body } = delivery
    pending.isBegun = true
    account.begin()
    orderingKeys.leave(delivery)
    const record = { topic, partition: pending.record.partition, key, value: body, headers }
    if (topic === topics.deadLetters) await this.#writeDeadLetter(record)
    else if (!(await this.#isTaken(record))) {
      const { reason, detail } = tooLarge
      observer.deadLettered(reason, detail, pending.record, delivery)
      this.missed(delivery)
      const letter = { ...record, topic: topics.deadLetters, headers: { ...headers, reason, detail } }
      await this.#writeDeadLetter(letter)
    }
    delivery.complete()
    account.end()
  }

  /** Resolves once the broker has it, in full, or without what makes it too large. */
  async #writeDeadLetter(letter: OutboundRecord): Promise<void> {
    for (const form of formsOf(letter)) {
      if (await this.#isTaken(form)) return
    }
    // Going on would lose it. The check of the topics at the next start says what is wrong.
    throw new Error(`${letter.topic} does not even accept a small record: see its max.message.bytes`)
  }

  async #isTaken(record: OutboundRecord): Promise<boolean> {
    return (await this.#options.outlet.produce(record)) === 'acknowledged'
  }
}

function headersOf(delivery: Delivery): CarriedHeaders {
  const carried = encodeCarried(delivery)
  return delivery.trace === undefined ? carried : { ...carried, ...delivery.trace.headers }
}

export function keptOfEvent(headers: ReceivedHeaders): CarriedHeaders {
  const { 'source-id': sourceId } = salvageCarried(headers)
  return sourceId === undefined ? {} : { 'source-id': sourceId }
}

/** The dead letter's own `origin` is the record of the retry topic. */
function keptOfCarried(headers: ReceivedHeaders): CarriedHeaders {
  const { origin, ...kept } = salvageCarried(headers)
  return origin === undefined ? kept : { ...kept, 'carried-origin': origin }
}

/** Ids of the catalog have at most so many characters. */
const maxQuotedCharacters = 100

/** An id that came with a record, for a sentence of a dead letter. */
export function quote(id: string): string {
  if (id.length <= maxQuotedCharacters) return JSON.stringify(id)
  return `${JSON.stringify(id.slice(0, maxQuotedCharacters))}…, whose id is too long`
}
