import type { Source } from '../../catalog/catalog.ts'
import type { MessageLimits } from '../../message/limits.ts'
import { partitionOf } from '../../message/partitioner.ts'
import { AddressContexts } from '../messages/address-contexts.ts'
import { type Answer, isAtFault, success } from './answer.ts'
import { serviceUnavailable } from './service-unavailable.ts'
import { inflateBody, isGzip, startOfGzip } from '../messages/inflate-body.ts'
import type { Occasion } from '../messages/clock.ts'
import type { CheckedItem, ReadyMessage, Call } from '../messages/item.ts'
import { maxBatchBytes, maxCompleteBatchBytes, maxMessageBytes } from '../messages/request-limits.ts'
import type { RefusalBudgets } from './refusal-budgets.ts'
import { mostInflated, RequestWork } from '../messages/request-work.ts'
import type { GatewayObserver } from './gateway-events.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { type Parcel, recordBytes } from '../outbox/parcel.ts'
import { scanBatch, scanSingle } from '../messages/scan-body.ts'
import type { Sources } from './sources.ts'
import { MessageOutcomes } from './message-outcomes.ts'
import type { RequestTrace, SendTrace } from './request-tracing.ts'
import { type CallSetting, type ReadCall, readCall } from './tracking-call.ts'
import {
  beyondLimits,
  contextTooLarge,
  rateLimited,
  refusedTooOften,
  unknownWriteKey,
  unreadable,
} from './tracking-refusals.ts'
import { type KeySearch, keyIn, keysIn, keysOf, saysKey } from '../messages/write-key.ts'

export type TrackingOptions = {
  readonly sources: Sources
  readonly outbox: Outbox
  readonly observer: GatewayObserver
  readonly topic: string
  readonly partitions: number
  readonly limits: MessageLimits
  readonly budgets: RefusalBudgets
  /** Returns milliseconds since 1970. */
  readonly now: () => number
}

/** Segment's tracking API. Turns the body of a request into records and into the request's answer. */
export type Tracking = {
  /**
   * If the request is refused because of its head, returns the answer. Returns `undefined` if the answer
   * depends on the body. `bytes`: the length of the body that the head announces; 0 if it announces none.
   */
  refusal(
    authorization: string | undefined,
    announced: { readonly bytes: number; readonly client: Client },
  ): Answer | undefined
  /**
   * Answers a call. `sent` is the body as received. The status 200 means that Kafka has acknowledged every
   * message that wasn't left out.
   */
  handle(
    call: Call,
    sent: Buffer,
    authorization: string | undefined,
    client: Client,
    trace?: RequestTrace,
  ): Promise<Answer>
}

export function createTracking(options: TrackingOptions): Tracking {
  return new TrackingCalls(options)
}

class TrackingCalls implements Tracking {
  readonly #options: TrackingOptions
  readonly #sources: Sources
  readonly #outbox: Outbox
  readonly #observer: GatewayObserver
  /** The record headers of each source. All records of a source share one object. */
  readonly #headers = new Map<string, Readonly<Record<string, string>>>()
  readonly #setting: CallSetting
  readonly #budgets: RefusalBudgets

  constructor(options: TrackingOptions) {
    this.#options = options
    this.#budgets = options.budgets
    const { limits, now } = options
    this.#setting = { limits, now, addressContexts: new AddressContexts(limits) }
    this.#sources = options.sources
    this.#outbox = options.outbox
    this.#observer = options.observer
  }

  #headersOf({ id }: Source): Readonly<Record<string, string>> {
    let made = this.#headers.get(id)
    if (made === undefined) {
      made = { 'source-id': id }
      this.#headers.set(id, made)
    }
    return made
  }

  /**
   * Packs the messages of a call into a parcel. Call `submit` directly after this method, without an `await`
   * in between. Otherwise a part that the parcel waits for might leave the outbox before that.
   */
  #pack(
    source: Source,
    { items, lostDigits, surroundings, work }: ReadCall,
    sending: SendTrace | undefined,
  ): Packed {
    const outcomes = new MessageOutcomes()
    outcomes.lostDigits = lostDigits
    const { arrival, sentAt, leadMs } = surroundings
    const parcel = this.#outbox.parcel(this.#options.topic, source.id, { arrival, sentAt, leadMs })
    const own = this.#headersOf(source)
    const all = sending === undefined ? own : { ...own, ...sending.headers }
    let written = 0
    for (let index = 0; index < items.length; index++) {
      const checked = items.check(index, surroundings)
      if (work.isLimited && !work.outlines(items.outlined))
        return { ok: false, answer: unreadable('too_dense', surroundings.kind ?? 'batch') }
      if (!checked.ok) {
        outcomes.leaveOut(checked.reason, index, items.outlineAt(index), checked.detail)
        continue
      }
      outcomes.take(checked.kind)
      written += checked.bytes
      if (written > maxCompleteBatchBytes) return { ok: false, answer: contextTooLarge }
      if (isInFlight(parcel, checked, (occasion) => items.check(index, { ...surroundings, ...occasion }))) {
        outcomes.coalesced++
        continue
      }
      const { key, value, bytes, givenId } = checked
      const partition = partitionOf(key, this.#options.partitions)
      const size = recordBytes(key, bytes) + (sending?.bytes ?? 0)
      parcel.add({ partition, key, value, headers: all, bytes: size }, givenId)
    }
    return { ok: true, parcel, outcomes, sending }
  }

  #accept(
    judging: Judging,
    source: Source,
    call: ReadCall,
    trace: RequestTrace | undefined,
  ): Answer | Promise<Answer> {
    const { items, surroundings } = call
    if (!source.enabled) return this.#leaveOutAll(source, call)
    if (items.length === 0) {
      this.#observer.leftOut('empty_batch', 1, source.id)
      return success
    }
    const obstacle = this.#outbox.obstacle(this.#options.topic)
    if (obstacle !== undefined) return this.#serviceUnavailable(obstacle)
    const waitMs = this.#sources.take(source, items.length)
    if (waitMs > 0) return rateLimited(waitMs)
    const packed = this.#pack(source, call, trace?.sends(this.#options.topic, source.id))
    if (!packed.ok) return packed.answer
    if (packed.outcomes.isRefusal) judging.fault = 'own'
    return this.#deliver(packed, source, items.length, surroundings.kind !== undefined)
  }

  #refusalOf(source: Source): Answer | undefined {
    // A disabled source isn't refused here. Its messages are read and left out, so that the answer names
    // them.
    if (!source.enabled) return undefined
    const waitMs = this.#sources.take(source, 0)
    if (waitMs > 0) return rateLimited(waitMs)
    const obstacle = this.#outbox.obstacle(this.#options.topic)
    return obstacle === undefined ? undefined : this.#serviceUnavailable(obstacle)
  }

  #serviceUnavailable(why: Parameters<typeof serviceUnavailable>[0]): Answer {
    return serviceUnavailable(why, this.#outbox.throttleMs(this.#options.topic))
  }

  refusal(
    authorization: string | undefined,
    { bytes, client }: { readonly bytes: number; readonly client: Client },
  ): Answer | undefined {
    const source = this.#sources.withWriteKey(keysOf(authorization))
    const refused = this.#refusalByHead(source, authorization)
    if (refused !== undefined || source === undefined || bytes <= mostSpared) return refused
    if (!this.#budgets.isUsed || !this.#budgets.isWatched(client.address)) return undefined
    const waitMs = this.#budgets.waitMs(client.address, source.id)
    return waitMs > 0 ? refusedTooOften(waitMs) : undefined
  }

  #refusalByHead(source: Source | undefined, authorization: string | undefined): Answer | undefined {
    if (source !== undefined) return this.#refusalOf(source)
    return saysKey(authorization) ? this.#refuseUnknown() : undefined
  }

  /**
   * Looks for write keys in a request's unparsed body. Returns a refusal if the body has no known key, or if
   * the gateway would refuse the request with every known key that the body has, or if the search would cost
   * too much.
   */
  #refusalByText(
    bytes: Buffer,
    work: RequestWork,
    { sent, call }: Judging,
    client: Client,
  ): Answer | undefined {
    const search: KeySearch = { leftBytes: work.mostSearched }
    const mayBeOf = this.#sources.withWriteKeys(keysIn(bytes, search))
    if (search.leftBytes <= 0) return unreadable('too_dense', call)
    work.searched(search.leftBytes)
    if (mayBeOf.length === 0) return this.#refuseUnknown()
    const isSpared = !this.#budgets.isUsed || sent.length <= mostSpared
    const refusals = mayBeOf.map((source) => {
      const waitMs = isSpared ? 0 : this.#budgets.waitMs(client.address, source.id)
      return waitMs > 0 ? refusedTooOften(waitMs) : this.#refusalOf(source)
    })
    return refusals.includes(undefined) ? undefined : refusals[0]
  }

  #refuseUnknown(): Answer {
    this.#observer.leftOut('unknown_source', 1, undefined)
    return unknownWriteKey
  }

  #leaveOutAll(source: Source, { items, surroundings }: ReadCall): Answer {
    const outcomes = new MessageOutcomes()
    for (let index = 0; index < items.length; index++) {
      outcomes.leaveOut('source_disabled', index, items.outlineAt(index))
    }
    outcomes.tell(this.#observer, source.id)
    return surroundings.kind === undefined ? outcomes.answer() : outcomes.answerToSingle()
  }

  /**
   * Sends a parcel and answers its request. While this method waits, it holds only the records of the
   * request. The parsed body would take several times as much memory.
   */
  async #deliver(
    { parcel, outcomes, sending }: PackedCall,
    source: Source,
    messages: number,
    isSingle: boolean,
  ): Promise<Answer> {
    const delivered = await this.#outbox.submit(parcel)
    if (parcel.parts.length > 0) sending?.end(parcel.records, delivered)
    if (delivered !== 'acknowledged') {
      this.#sources.giveBack(source, messages)
      return this.#serviceUnavailable(delivered)
    }
    outcomes.tell(this.#observer, source.id)
    if (!isSingle) return outcomes.answer()
    return outcomes.isBeyondLimits ? beyondLimits : outcomes.answerToSingle()
  }

  async handle(
    call: Call,
    sent: Buffer,
    authorization: string | undefined,
    client: Client,
    trace?: RequestTrace,
  ): Promise<Answer> {
    const ofHead = this.#sources.withWriteKey(keysOf(authorization))
    const refused = this.#refusalByHead(ofHead, authorization)
    if (refused !== undefined) return refused
    const early = this.#lookEarly(sent, ofHead, client)
    if (early.refusal !== undefined) return early.refusal
    const budgets = this.#budgets
    const startMs = budgets.now()
    const judging: Judging = { call, sent, ofHead, source: ofHead, bytes: sent.length, fault: undefined }
    const answer = this.#judge(judging, client, trace)
    if (!(answer instanceof Promise) && isAtFault(answer)) judging.fault = 'own'
    // What comes after this is waiting for Kafka.
    if (judging.fault !== undefined) {
      const source = early.source ?? (judging.fault === 'own' ? judging.source : undefined)
      const part = judging.fault === 'own' ? 1 : partOverRate
      budgets.charge(client.address, source?.id, {
        ms: part * (budgets.now() - startMs),
        bytes: judging.bytes,
      })
    }
    return answer
  }

  /**
   * Looks at a request before its body is inflated, and before all of its body is searched for a key. If
   * requests of its client were refused lately, this may refuse the request, or find the source to which it
   * is charged.
   */
  #lookEarly(sent: Buffer, ofHead: Source | undefined, client: Client): Early {
    const budgets = this.#budgets
    const isPacked = isGzip(sent)
    const mayRefuse = budgets.isUsed && (isPacked || (ofHead !== undefined && sent.length > mostSpared))
    if (!mayRefuse || !budgets.isWatched(client.address)) return { source: ofHead }
    // The whole body would tell the key that counts. An honest body has no other key at its beginning.
    const key = ofHead === undefined ? keyIn(startOfGzip(sent)) : undefined
    const source = ofHead ?? (key === undefined ? undefined : this.#sources.withWriteKey([key]))
    const waitMs = budgets.waitMs(client.address, source?.id)
    if (waitMs > 0) return { source, refusal: refusedTooOften(waitMs) }
    return {
      source,
      refusal: ofHead === undefined && source !== undefined ? this.#refusalOf(source) : undefined,
    }
  }

  #judge(judging: Judging, client: Client, trace: RequestTrace | undefined): Answer | Promise<Answer> {
    const { call, sent, ofHead } = judging
    const isBatch = call === 'batch'
    const mostBytes = isBatch ? maxBatchBytes : maxMessageBytes
    const inflated = inflateBody(sent, mostBytes, mostInflated(sent.length))
    judging.bytes = inflated.ok ? inflated.bytes.length : mostBytes
    if (!inflated.ok) return unreadable(inflated.fault, call)
    const work = new RequestWork(sent.length, inflated.bytes.length)
    const refusedByText =
      ofHead === undefined ? this.#refusalByText(inflated.bytes, work, judging, client) : undefined
    if (refusedByText !== undefined) {
      if (refusedByText.status === 429 && isGzip(sent)) judging.fault = 'over its rate'
      return refusedByText
    }
    const { limits } = this.#options
    const read = (isBatch ? scanBatch : scanSingle)(inflated.bytes, limits, work)
    if (!read.ok) return unreadable(read.fault, call)
    const source = ofHead ?? this.#sources.withWriteKey(keysOf(undefined, read.body['writeKey']))
    if (source === undefined) return this.#refuseUnknown()
    judging.source = source
    const called = readCall(call, read, { client, work }, this.#setting)
    return called.ok ? this.#accept(judging, source, called, trace) : called.answer
  }
}

/** A request while it is judged. `source` is its source, as soon as it is known. */
type Judging = {
  readonly call: Call
  readonly sent: Buffer
  /** The source of the key in the head of the request. */
  readonly ofHead: Source | undefined
  source: Source | undefined
  /** The length of the inflated body. */
  bytes: number
  /**
   * Why the client is charged for the request. `own`: because of the request itself, although it may be
   * answered 200. `over its rate`: because its body had to be inflated to find out that it has to wait.
   */
  fault: 'own' | 'over its rate' | undefined
}

/** What is known of a request before its body is inflated: its source, and whether it is refused. */
type Early = { readonly source: Source | undefined; readonly refusal?: Answer | undefined }

/**
 * The part of its time that is charged for a request of a source that is over its rate. Such clients are more
 * often honest than those whose requests are broken.
 */
const partOverRate = 0.1

/**
 * A request of this length that isn't compressed is read even if other requests of its client were refused
 * too often, because reading it costs little. This is the usual length of a single call.
 */
const mostSpared = 8 * 1_024

type PackedCall = {
  readonly ok: true
  readonly parcel: Parcel
  readonly outcomes: MessageOutcomes
  readonly sending: SendTrace | undefined
}
type Packed = PackedCall | { readonly ok: false; readonly answer: Answer }

/**
 * If an identical message of this source is in flight, returns true and makes the parcel wait for that
 * message. Identical messages of two requests still differ in their times of sending and receiving. So for
 * the comparison, the new message gets the times of the message in flight.
 */
function isInFlight(
  parcel: Parcel,
  { givenId }: ReadyMessage,
  checkWith: (occasion: Occasion) => CheckedItem,
): boolean {
  const part = givenId === undefined ? undefined : parcel.flights.get(givenId)
  const other = part?.records[part.ids.indexOf(givenId)]
  if (part === undefined || other === undefined) return false
  const again = checkWith(part.occasion)
  if (!again.ok || !isSameText(again.value, other.value)) return false
  parcel.joined.add(part)
  return true
}

function isSameText(one: string | Buffer, other: string | Buffer): boolean {
  return typeof one === 'string' && typeof other === 'string'
    ? one === other
    : Buffer.from(one).equals(Buffer.from(other))
}

/** The client that has sent a request. */
export type Client = {
  /** The client's address, to which refused requests are charged. */
  readonly address: string
  /**
   * The client's address, which is added to the messages of its request, or `undefined` if no address is to
   * be added.
   */
  readonly ip: string | undefined
  /** True if the times of its messages are kept, and not corrected by the error of its clock. */
  readonly keepsTimes?: boolean
}
