import type { Source } from '../catalog/catalog.ts'
import type { MessageLimits } from '../message/limits.ts'
import { partitionOf } from '../message/partitioner.ts'
import { type Answer, problem, success } from './answer.ts'
import { serviceUnavailable } from './service-unavailable.ts'
import {
  type BodyFault,
  inflateBody,
  isJsonObject,
  type JsonObject,
  readInflated,
  type AcceptedBody,
} from './body.ts'
import { arrivalAt, occasionOf } from './clock.ts'
import { checkItem, type ReadyMessage, type ItemContext, type TrackingKind } from './item.ts'
import { maxBatchBytes, maxBatchMessages, maxCompleteBatchBytes, maxMessageBytes } from './request-limits.ts'
import type { GatewayObserver } from './gateway-events.ts'
import type { Outbox } from './outbox.ts'
import { type Parcel, recordBytes } from './parcel.ts'
import { SharedObject } from './shared.ts'
import type { Sources } from './sources.ts'
import { MessageOutcomes } from './message-outcomes.ts'
import type { RequestTrace, SendTrace } from './request-tracing.ts'
import { keysIn, keysOf, saysKey } from './write-key.ts'

/** What a path of the tracking API takes: one message of a kind, or a list of messages of any. */
export type Call = TrackingKind | 'batch'

export type TrackingOptions = {
  readonly sources: Sources
  readonly outbox: Outbox
  readonly observer: GatewayObserver
  /** Where messages go. */
  readonly topic: string
  /** Of that topic. */
  readonly partitions: number
  readonly limits: MessageLimits
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** Segment's tracking API: from the body of a request to its answer. */
export type Tracking = {
  /** What a request is answered whatever its body says; `undefined` where that counts. */
  refusal(authorization: string | undefined): Answer | undefined
  /**
   * `sent` is the body as it came, `ip` what `context.ip` is filled in with, if anything. 200 says that Kafka
   * has every message of it that isn't left out.
   */
  handle(
    call: Call,
    sent: Buffer,
    authorization: string | undefined,
    ip: string | undefined,
    trace?: RequestTrace,
  ): Promise<Answer>
}

export function createTracking(options: TrackingOptions): Tracking {
  const { sources, outbox, observer } = options
  /** The same object for all records of a source. */
  const headers = new Map<string, Readonly<Record<string, string>>>()

  function headersOf({ id }: Source): Readonly<Record<string, string>> {
    let made = headers.get(id)
    if (made === undefined) {
      made = { 'source-id': id }
      headers.set(id, made)
    }
    return made
  }

  /** Between this and `submit` nothing may wait, so that what is in flight stays so. */
  function pack(
    source: Source,
    { items, spoiled, lostDigits, surroundings }: ReadCall,
    sending: SendTrace | undefined,
  ): Packed {
    const outcomes = new MessageOutcomes()
    outcomes.lostDigits = lostDigits
    const { arrival, sentAt, leadMs } = surroundings
    const parcel = outbox.parcel(options.topic, source.id, { arrival, sentAt, leadMs })
    const own = headersOf(source)
    const all = sending === undefined ? own : { ...own, ...sending.headers }
    let written = 0
    for (const [index, item] of items.entries()) {
      const checked = spoiled.has(index) ? notJson : checkItem(item, surroundings)
      if (!checked.ok) {
        outcomes.leaveOut(checked.reason, index, item)
        continue
      }
      outcomes.take(checked.kind)
      written += checked.bytes
      if (written > maxCompleteBatchBytes) return { ok: false, answer: contextTooLarge }
      if (isInFlight(parcel, checked, item, surroundings)) {
        outcomes.coalesced++
        continue
      }
      const { key, text, bytes, givenId } = checked
      const partition = partitionOf(key, options.partitions)
      const size = recordBytes(key, bytes) + (sending?.bytes ?? 0)
      parcel.add({ partition, key, value: text, headers: all, bytes: size }, givenId)
    }
    return { ok: true, parcel, outcomes, sending }
  }

  function accept(source: Source, call: ReadCall, trace: RequestTrace | undefined): Answer | Promise<Answer> {
    const { items, surroundings } = call
    if (!source.enabled) return leaveOutAll(source, items)
    if (items.length === 0) {
      observer.leftOut('empty_batch', 1, source.id)
      return success
    }
    const obstacle = outbox.obstacle(options.topic)
    if (obstacle !== undefined) return serviceUnavailable(obstacle)
    const waitMs = sources.take(source, items.length)
    if (waitMs > 0) return rateLimited(waitMs)
    const packed = pack(source, call, trace?.sends(options.topic, source.id))
    if (!packed.ok) return packed.answer
    return deliver(packed, source, items.length, surroundings.kind !== undefined)
  }

  function refusalOf(source: Source): Answer | undefined {
    // What it sends is looked at, and left out.
    if (!source.enabled) return undefined
    const waitMs = sources.take(source, 0)
    if (waitMs > 0) return rateLimited(waitMs)
    const obstacle = outbox.obstacle(options.topic)
    return obstacle === undefined ? undefined : serviceUnavailable(obstacle)
  }

  function refusal(authorization: string | undefined): Answer | undefined {
    const source = sources.withWriteKey(keysOf(authorization))
    if (source !== undefined) return refusalOf(source)
    return saysKey(authorization) ? refuseUnknown() : undefined
  }

  /** By what may be the key in a body, which isn't read: whichever of them it is, it is refused. */
  function refusalByText(bytes: Buffer): Answer | undefined {
    const mayBeOf = sources.withWriteKeys(keysIn(bytes))
    if (mayBeOf.length === 0) return refuseUnknown()
    const refusals = mayBeOf.map(refusalOf)
    return refusals.includes(undefined) ? undefined : refusals[0]
  }

  function refuseUnknown(): Answer {
    observer.leftOut('unknown_source', 1, undefined)
    return unknownWriteKey
  }

  function leaveOutAll(source: Source, items: readonly unknown[]): Answer {
    const outcomes = new MessageOutcomes()
    for (const [index, item] of items.entries()) outcomes.leaveOut('source_disabled', index, item)
    outcomes.tell(observer, source.id)
    return outcomes.answer()
  }

  /**
   * Nothing of the request is kept while it waits but its records: what it was parsed into takes several
   * times as much.
   */
  async function deliver(
    { parcel, outcomes, sending }: PackedCall,
    source: Source,
    messages: number,
    isSingle: boolean,
  ): Promise<Answer> {
    const delivered = await outbox.submit(parcel)
    if (parcel.parts.length > 0) sending?.end(parcel.records, delivered)
    if (delivered !== 'acknowledged') {
      sources.giveBack(source, messages)
      return serviceUnavailable(delivered)
    }
    outcomes.tell(observer, source.id)
    return isSingle && outcomes.isBeyondLimits ? beyondLimits : outcomes.answer()
  }

  return {
    refusal,
    async handle(call, sent, authorization, ip, trace) {
      const refused = refusal(authorization)
      if (refused !== undefined) return refused
      const isBatch = call === 'batch'
      const inflated = inflateBody(sent, isBatch ? maxBatchBytes : maxMessageBytes)
      if (!inflated.ok) return unreadable(inflated.fault, call)
      const ofHead = sources.withWriteKey(keysOf(authorization))
      const refusedByText = ofHead === undefined ? refusalByText(inflated.bytes) : undefined
      if (refusedByText !== undefined) return refusedByText
      const read = readInflated(inflated.bytes, { isBatch })
      if (!read.ok) return unreadable(read.fault, call)
      const source = ofHead ?? sources.withWriteKey(keysOf(undefined, read.body['writeKey']))
      if (source === undefined) return refuseUnknown()
      const called = readCall(call, read, ip, options)
      return called.ok ? accept(source, called, trace) : called.answer
    },
  }
}

type PackedCall = {
  readonly ok: true
  readonly parcel: Parcel
  readonly outcomes: MessageOutcomes
  readonly sending: SendTrace | undefined
}
type Packed = PackedCall | { readonly ok: false; readonly answer: Answer }

type ReadCall = {
  readonly ok: true
  readonly items: readonly unknown[]
  readonly surroundings: ItemContext
} & Pick<AcceptedBody, 'spoiled' | 'lostDigits'>

/** The messages of a call, and what it says for all of them. A batch that is missing is an empty one. */
function readCall(
  call: Call,
  { body, spoiled, lostDigits }: AcceptedBody,
  ip: string | undefined,
  { limits, now }: TrackingOptions,
): ReadCall | { readonly ok: false; readonly answer: Answer } {
  const arrival = arrivalAt(now())
  if (call !== 'batch') {
    // A single call says itself when it was sent.
    const context = sharedOf(withIp(undefined, ip), limits)
    const own = { ...occasionOf(undefined, arrival), context, integrations: undefined }
    return { ok: true, items: [body], spoiled, lostDigits, surroundings: { ...own, kind: call, limits } }
  }
  const { batch = [], context, integrations, sentAt } = body
  const items: unknown = batch ?? []
  if (!Array.isArray(items)) return { ok: false, answer: notAList }
  if (items.length > maxBatchMessages) return { ok: false, answer: tooManyMessages }
  if (!isObjectOrAbsent(context) || !isObjectOrAbsent(integrations)) return { ok: false, answer: notObjects }
  const shared = {
    context: sharedOf(withIp(context, ip), limits),
    integrations: sharedOf(integrations, limits),
  }
  if (isLarge(shared.context) || isLarge(shared.integrations)) return { ok: false, answer: contextTooLarge }
  return {
    ok: true,
    items,
    spoiled,
    lostDigits,
    surroundings: { ...occasionOf(sentAt, arrival), ...shared, kind: undefined, limits },
  }
}

function isObjectOrAbsent(value: unknown): value is JsonObject | null | undefined {
  return value === undefined || value === null || isJsonObject(value)
}

function sharedOf(value: JsonObject | null | undefined, limits: MessageLimits): SharedObject | undefined {
  const isEmpty = value === undefined || value === null || Object.keys(value).length === 0
  return isEmpty ? undefined : new SharedObject(value, limits)
}

/**
 * The address that a request came from is said by it for all of its messages: whatever they say themselves
 * wins.
 */
function withIp(context: JsonObject | null | undefined, ip: string | undefined): JsonObject | undefined {
  return ip === undefined ? (context ?? undefined) : { ip, ...context }
}

/** What a batch says for all of its messages is written into each of them. */
function isLarge(shared: SharedObject | undefined): boolean {
  return shared !== undefined && shared.bytes > maxMessageBytes
}

/**
 * Whether an identical message of this source is on its way: then the parcel waits for that one. The other
 * was sent and came at another time, which both say, so this one is written out as if it had come with it.
 */
function isInFlight(
  parcel: Parcel,
  { givenId }: ReadyMessage,
  item: unknown,
  surroundings: ItemContext,
): boolean {
  const part = givenId === undefined ? undefined : parcel.flights.get(givenId)
  const other = part?.records[part.ids.indexOf(givenId)]
  if (part === undefined || other === undefined) return false
  const again = checkItem(item, { ...surroundings, ...part.occasion })
  if (!again.ok || again.text !== other.value) return false
  parcel.joined.add(part)
  return true
}

/** Of a message in which NaN or Infinity stood. */
const notJson = { ok: false, reason: 'not_json' } as const
const beyondLimits = problem(
  'invalid_body',
  'Send fewer levels and keys, and numbers up to 1.7e308: the message can not be written.',
)
const unknownWriteKey = problem(
  'unknown_write_key',
  'No source has this write key. Send a write key by Basic authentication, as its user name, or as writeKey in the body.',
)
const notAList = problem('invalid_body', 'Send batch as a list of messages.')
const notObjects = problem('invalid_body', 'Send context and integrations as objects, or leave them out.')
const tooManyMessages = problem('too_many_messages', `Send at most ${maxBatchMessages} messages in a batch.`)
const contextTooLarge = problem(
  'payload_too_large',
  'Send less: with the context of the batch in each of its messages it is too large.',
)

export function unreadable(fault: BodyFault, call: Call): Answer {
  switch (fault) {
    case 'too_large':
      return call === 'batch'
        ? problem('payload_too_large', `Send at most ${maxBatchBytes} bytes (500 KB) in a batch.`)
        : problem('payload_too_large', `Send at most ${maxMessageBytes} bytes (32 KB) in a message.`)
    case 'bad_gzip':
      return problem('malformed_json', 'Send the whole body in gzip, or none of it.')
    case 'not_utf8':
      return problem('malformed_json', 'Send the body as UTF-8.')
    case 'not_json':
      return problem('malformed_json', 'Send the body as JSON (RFC 8259). NaN and Infinity are no JSON.')
    case 'not_an_object':
      return problem('invalid_body', 'Send the body as one JSON object.')
  }
}

export function rateLimited(waitMs: number): Answer {
  return problem(
    'rate_limited',
    'The source is over its rate of messages a second.',
    Math.max(1, Math.ceil(waitMs / 1_000)),
  )
}
