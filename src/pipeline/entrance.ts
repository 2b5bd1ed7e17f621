import type { HeldRecord, RecordContent } from '../message/held-record.ts'
import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { LaneClass } from '../delivery/lanes/lane-queue.ts'
import { enter, type EnterResult } from '../message/enter.ts'
import { type InternalFault, internalFault } from '../message/internal-fault.ts'
import { headerText, parseWholeNumber, sourceIdOf } from '../message/record-headers.ts'
import { type RetryState, decodeRetryState } from '../retry/retry-state.ts'
import { type Route, route } from '../routing/route.ts'
import type { BufferAccount } from './buffer-account.ts'
import { describeFilterFault } from './dead-letter-advice.ts'
import { Delivery, type LaneTerms } from './delivery.ts'
import { type Exits, quote } from './exits.ts'
import type { BackfillNeeds } from './needs-backfill.ts'
import type { RuleTime } from './rule-time.ts'
import type { DeadReason } from '../message/dead-letter-reasons.ts'
import type { PipelineOptions, DeleteToDeliver, IdentifyToDeliver, QueueClass } from './pipeline-ports.ts'

type EntranceOptions = Pick<
  PipelineOptions,
  'catalog' | 'limits' | 'topics' | 'observer' | 'repeats' | 'ladder' | 'tracing' | 'ownSource' | 'now'
> & {
  readonly account: BufferAccount
  readonly backfillNeeds: BackfillNeeds
  readonly exits: Exits
  readonly ruleTime: RuleTime
}

export type Entered = { readonly delivery: Delivery; readonly destination: DestinationDefinition }

/** The ids of a message that is being routed, the record of the message, and its body if it has one. */
type RoutedRecord = {
  readonly sourceId: string
  readonly messageId: string
  readonly record: HeldRecord
  readonly body?: Buffer
}

/** The fields that a delivery takes from its message. */
type OwnMessage = Pick<RetryState, 'sourceId' | 'messageId' | 'kind' | 'property' | 'isUncertain'>

type Routed = {
  readonly message: OwnMessage
  readonly body: Buffer
  readonly destination: DestinationDefinition
}

/**
 * Turns records into deliveries. Settles or refuses records from which no delivery is made. Holds no state.
 */
export class Entrance {
  readonly #options: EntranceOptions

  constructor(options: EntranceOptions) {
    this.#options = options
  }

  /** Makes the deliveries of a record of `events`. */
  event(record: HeldRecord, content: RecordContent): readonly Entered[] {
    const { catalog, observer, account } = this.#options
    const sourceId = sourceIdOf(content.headers)
    if (sourceId === undefined) {
      const detail = 'the record has no header source-id: send the id of a source of the catalog'
      return this.#refuse(record, content, 'no_source', detail)
    }
    const { sources, destinationsBySource } = catalog()
    const source = sources.get(sourceId)
    if (source === undefined && sourceId !== this.#options.ownSource)
      return this.#refuse(record, content, 'unknown_source', `the catalog has no source ${quote(sourceId)}`)
    if (source?.enabled !== true) {
      observer.notRouted('source_disabled')
      record.settle()
      return none
    }
    const entered = this.#enter(record, content)
    if (!entered.ok) return this.#refuse(record, content, entered.reason, entered.detail)
    const { messageId, type: kind, body, isIdGiven } = entered.message
    const connected = destinationsBySource.get(sourceId) ?? []
    const {
      to: destinations,
      unjudged,
      failed,
    } = this.#route(entered.message, connected, {
      sourceId,
      messageId,
      record,
      body,
    })
    const count = destinations.length + failed.length
    if (count === 0) {
      record.settle()
      return none
    }
    if (isIdGiven && this.#isRepeat(record, sourceId, messageId)) {
      observer.repeated(record, sourceId, messageId)
      record.settle()
      return none
    }
    record.passOn?.()
    const pending = account.hold(record, count, (content.key?.length ?? 0) + body.length)
    const key = content.key === null ? null : Buffer.from(content.key)
    const message: OwnMessage = { sourceId, messageId, kind }
    const made = (destination: DestinationDefinition): Entered => {
      const state = freshOf(message, destination, record)
      const lane = this.#laneTerms(destination, 'fresh')
      return { delivery: this.#deliveryOf(state, { pending, key, body, lane }), destination }
    }
    const deliveries = destinations.map(made)
    for (const { delivery, destination } of unjudged.length === 0 ? none : deliveries)
      if (unjudged.includes(destination)) delivery.isUnjudged = true
    for (const { destination, ...failure } of failed) {
      const detail = describeFilterFault(failure)
      this.#options.exits.deadLetter(made(destination).delivery, 'filter_failed', detail)
    }
    return deliveries
  }

  /**
   * Makes the deliveries of an Identify. `record` is the record of `memberships` that caused the Identify.
   */
  identify(record: HeldRecord, identify: IdentifyToDeliver): readonly Entered[] {
    const { spaceId, userId, property, since, messageId, body } = identify
    const { catalog, observer, exits, account, backfillNeeds } = this.#options
    const { sources, destinationsBySource } = catalog()
    const space = sources.get(spaceId)
    const connected = destinationsBySource.get(spaceId) ?? []
    if (space === undefined || space.kind === 'events') {
      const pending = exits.refuseIdentify(record, identify)
      for (const marked of backfillNeeds.tellOfUnrouted(connected, none, spaceId))
        account.settleAfterNote(marked, pending)
      return none
    }
    if (!space.enabled) observer.notRouted('source_disabled')
    const about = { sourceId: spaceId, messageId, record }
    const to = space.enabled ? this.#route({ type: 'identify' }, connected, about).to : []
    // A destination that doesn't get the Identify is marked, even if the Identify is superseded. A previous
    // owner may have sent the Identify to this destination. If the Identify then takes effect late, nothing
    // corrects it.
    const marked = to.length < connected.length ? backfillNeeds.tellOfUnrouted(connected, to, spaceId) : none
    const message: OwnMessage = {
      sourceId: spaceId,
      messageId,
      kind: 'identify',
      property: { userId, spaceId, property, since },
      isUncertain: identify.isSuperseded === true || record.mayHaveBegun === true,
    }
    const routed = to.map((destination) => ({ message, body, destination }))
    return this.#deliveriesOf(record, routed, { userId, bodyBytes: body.length }, marked)
  }

  /**
   * Makes the deliveries of a deletion request. For each source of the request, each destination of the
   * source gets a `delete`.
   */
  deletion(record: HeldRecord, { userId, deletes }: DeleteToDeliver): readonly Entered[] {
    const { catalog, observer } = this.#options
    const { sources, destinationsBySource } = catalog()
    const routed = deletes.flatMap(({ sourceId, messageId, body }): readonly Routed[] => {
      // The deletion also applies to a source that is off, because it may have sent messages earlier.
      if (!sources.has(sourceId)) {
        observer.unknownSource(sourceId, record)
        return []
      }
      const message: OwnMessage = { sourceId, messageId, kind: 'delete' }
      const connected = destinationsBySource.get(sourceId) ?? []
      const { to } = this.#route({ type: 'delete' }, connected, { sourceId, messageId, record })
      return to.map((destination) => ({ message, body, destination }))
    })
    const bodyBytes = deletes.reduce((sum, { body }) => sum + body.length, 0)
    return this.#deliveriesOf(record, routed, { userId, bodyBytes })
  }

  /**
   * Makes the delivery of a record of `replays`, of a record of a retry topic whose wait is over, or of a
   * record that was pulled from `queueClass` of its destination's queue. Returns `undefined` if the record
   * was refused.
   */
  resume(record: HeldRecord, content: RecordContent, queueClass?: QueueClass): Delivery | undefined {
    const { key, value, headers } = content
    const decoded = decodeRetryState(headers)
    if (!decoded.ok || value === null || value.length === 0) {
      const detail = decoded.ok ? 'the record has no value' : decoded.detail
      this.#refuse(record, content, 'bad_retry_headers', detail)
      return undefined
    }
    const { state } = decoded
    const { account, catalog, ladder, now, topics } = this.#options
    const destination = catalog().destinations.get(state.destinationId)
    // What is pulled shares no memory with other records, and what expires is not kept for long.
    const own = (bytes: Buffer): Buffer => (queueClass === undefined ? Buffer.from(bytes) : bytes)
    const delivery = this.#deliveryOf(state, {
      pending: account.hold(record, 1, (key?.length ?? 0) + value.length, queueClass !== undefined),
      key: key === null ? null : own(key),
      body: own(value),
      lane: {
        ...this.#laneTerms(destination, laneClassOf(record.topic === topics.replays, queueClass)),
        isFromQueue: queueClass !== undefined,
      },
    })
    const timeLeft = queueClass && headerText(headers, 'time-left')
    if (timeLeft !== undefined) delivery.continueClock(now() + (parseWholeNumber(timeLeft) ?? 0))
    // A record that another program wrote may have a later `expires-at` than any record of Sluice. Without
    // this limit, it would stay on the ladder until that time.
    delivery.limitClock(ladder, now())
    if (state.property !== undefined && record.mayHaveBegun === true) delivery.becomeUncertain()
    return delivery
  }

  #refuse(
    record: HeldRecord,
    content: RecordContent,
    reason: DeadReason,
    detail: string,
  ): readonly Entered[] {
    this.#options.exits.refuse(record, content, { reason, detail })
    return none
  }

  /**
   * Brings a message into its canonical form. An exception in this step is a bug in Sluice. In that case, the
   * message is refused, because a bug must not stop the partition.
   */
  #enter(record: HeldRecord, { key, value }: RecordContent): EnterResult | InternalFault {
    const { limits, topics } = this.#options
    const { partition, offset, timestampMs } = record
    let entered: EnterResult
    try {
      entered = enter(value, { topic: topics.events, partition, offset, timestampMs }, limits)
    } catch (error) {
      return internalFault(error)
    }
    const keyBytes = key?.length ?? 0
    if (!entered.ok || keyBytes + entered.message.body.length <= limits.maxBytes) return entered
    const detail = `Send less: with its key of ${keyBytes} bytes the message is over ${limits.maxBytes} bytes.`
    return { ok: false, reason: 'body_too_large', detail }
  }

  /**
   * Returns true if the message has come before. Call this method after all other checks, so that a refused
   * message or one without a destination isn't remembered. Its sender may then send it again.
   */
  #isRepeat(record: HeldRecord, sourceId: string, messageId: string): boolean {
    const { repeats, observer } = this.#options
    try {
      return repeats?.isRepeat(record, sourceId, messageId) ?? false
    } catch (error) {
      // A repeat that is delivered does no harm, because receivers recognize it by its id.
      observer.failed(error)
      return false
    }
  }

  #route(
    message: Parameters<typeof route>[0],
    connected: readonly DestinationDefinition[],
    { sourceId, messageId, record, body }: RoutedRecord,
  ): Pick<Route<DestinationDefinition>, 'to' | 'unjudged' | 'failed'> {
    const { observer, ruleTime } = this.#options
    const { to, unjudged, skipped, failed } = route(message, connected, ruleTime)
    if (connected.length === 0) observer.notRouted('no_destination')
    for (const { destination, reason } of skipped) {
      observer.notRouted(reason)
      const filtered = { destinationId: destination.id, sourceId, messageId, kind: message.type, body }
      observer.filtered?.(reason, filtered, record)
    }
    return { to, unjudged, failed }
  }

  /**
   * Makes the deliveries of a record. The record is settled when all of them have ended and all promises in
   * `marked` have resolved.
   */
  #deliveriesOf(
    record: HeldRecord,
    routed: readonly Routed[],
    { userId, bodyBytes }: { userId: string; bodyBytes: number },
    marked: readonly Promise<void>[] = none,
  ): readonly Entered[] {
    if (routed.length === 0 && marked.length === 0) {
      record.settle()
      return none
    }
    const { account } = this.#options
    const key = Buffer.from(userId)
    const pending = account.hold(record, routed.length, key.length + bodyBytes)
    for (const one of marked) account.settleAfterNote(one, pending)
    return routed.map(({ message, body, destination }) => {
      const lane = this.#laneTerms(destination, 'fresh')
      const state = freshOf(message, destination, record)
      return { delivery: this.#deliveryOf(state, { pending, key, body, lane }), destination }
    })
  }

  #laneTerms(destination: DestinationDefinition | undefined, laneClass: LaneClass): LaneTerms {
    return { cap: destination?.maxInFlight ?? 1, laneClass }
  }

  #deliveryOf(state: RetryState, begun: ConstructorParameters<typeof Delivery>[1]): Delivery {
    const delivery = new Delivery(state, begun)
    const { tracing } = this.#options
    if (tracing !== undefined) delivery.trace = tracing.begin(delivery)
    return delivery
  }
}

function laneClassOf(isReplayed: boolean, queueClass: QueueClass | undefined): LaneClass {
  if (queueClass === undefined) return isReplayed ? 'backfill' : 'retry'
  return queueClass === 'front' ? 'fresh' : queueClass
}

/** Returns the fields of a delivery that has not been tried yet. */
function freshOf(message: OwnMessage, { id }: DestinationDefinition, record: HeldRecord): RetryState {
  return {
    ...message,
    destinationId: id,
    nextRung: 0,
    attempts: 0,
    firstSeenMs: record.timestampMs,
    expiresAtMs: 0,
    failedHooks: noHooks,
    notBeforeMs: nowhere,
    lastOutcome: '',
    origin: record,
  }
}

const none: readonly never[] = []
const noHooks: readonly string[] = []
const nowhere: ReadonlyMap<string, number> = new Map()
