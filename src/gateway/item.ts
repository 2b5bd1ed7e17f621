import { randomUUID } from 'node:crypto'
import { holdsInfinite } from '../message/json.ts'
import { partitionKey } from '../message/partition-key.ts'
import type { MessageLimits } from '../message/limits.ts'
import type { MessageKind } from '../message/message-schemas.ts'
import { measureStructure } from '../message/structure.ts'
import { isAbsent, validate } from '../message/validate.ts'
import { isJsonObject, type JsonObject } from './body.ts'
import { correctTimestamp, type Occasion, occasionOf } from './clock.ts'
import { maxCompleteMessageBytes, maxMessageBytes } from './request-limits.ts'
import type { LeftOutReason } from './reasons.ts'
import type { SharedObject, WrittenObject } from './shared.ts'

/** The kinds that come with a public write key. A `delete` doesn't. */
export const trackingKinds = [
  'identify',
  'track',
  'page',
  'screen',
  'group',
  'alias',
] as const satisfies readonly MessageKind[]
export type TrackingKind = (typeof trackingKinds)[number]

/** What the request says for all of its messages. */
export type ItemContext = Occasion & {
  /** The path's kind, which wins over the message's `type`; `undefined` in a batch. */
  readonly kind: TrackingKind | undefined
  readonly context: SharedObject | undefined
  readonly integrations: SharedObject | undefined
  /** The worker's: what is over them would only become a dead letter. */
  readonly limits: MessageLimits
}

/** A message that can go to Kafka. */
export type ReadyMessage = {
  readonly ok: true
  readonly kind: TrackingKind
  /** The key of its record. */
  readonly key: string
  /** The value of its record: what JSON.stringify makes of it. */
  readonly text: string
  /** Of `text` in UTF-8. */
  readonly bytes: number
  /** The `messageId` that the client gave; `undefined` when it has one of ours. */
  readonly givenId: string | undefined
}

export type CheckedItem = ReadyMessage | LeftOut

/**
 * Makes a message of what a client sent, or says why it is left out. Added are `type` (from the path),
 * `messageId` (where absent), `receivedAt`, `sentAt` (the batch's), and `originalTimestamp`, which is what
 * `timestamp` was before it was corrected for the client's clock. `context` and `integrations` of the batch
 * are merged in, field by field, the message's own fields win. A `writeKey` is taken out. All else is as it
 * was sent. Never throws.
 */
export function checkItem(item: unknown, surroundings: ItemContext): CheckedItem {
  if (!isJsonObject(item)) return leaveOut('not_an_object')
  const { kind = item['type'], limits } = surroundings
  if (!isTrackingKind(kind)) return leaveOut('unknown_type')

  const message = complete(item, kind, surroundings)
  const validated = validate(message)
  if (!validated.ok) return leaveOut(validated.reason)
  const key = partitionKey(validated.message)
  if (key === undefined) return leaveOut('no_user_anon_id')

  const timestamp = correctTimestamp(happenedAt(item), occasionOfItem(item, surroundings))
  if (timestamp === undefined) return leaveOut('bad_timestamp')

  message.timestamp = timestamp
  const written = write(message, surroundings)
  if (!written.ok) return written
  const { text, bytes } = written
  if (bytes > maxMessageBytes && isTooLarge(item, bytes)) return leaveOut('message_too_large')
  if (bytes > limits.maxBytes) return leaveOut('body_too_large')
  return { ok: true, kind, key, text, bytes, givenId: givenId(item) }
}

type LeftOut = { readonly ok: false; readonly reason: LeftOutReason }

function leaveOut(reason: LeftOutReason): LeftOut {
  return { ok: false, reason }
}

type Message = {
  [field: string]: unknown
  context: unknown
  integrations: unknown
  originalTimestamp: unknown
  timestamp: unknown
}

/** Only ever spread, never assign by the client's names: to assign `__proto__` would set the prototype. */
function complete(item: JsonObject, kind: TrackingKind, { sentAt, arrival }: ItemContext): Message {
  const message = {
    ...item,
    type: kind,
    messageId: isAbsent(item['messageId']) ? randomUUID() : item['messageId'],
    context: item['context'],
    integrations: item['integrations'],
    originalTimestamp: item['originalTimestamp'] ?? item['timestamp'] ?? undefined,
    // What the client sent is corrected, and so it is read elsewhere.
    timestamp: undefined,
    sentAt: item['sentAt'] ?? sentAt ?? undefined,
    receivedAt: arrival.text,
  }
  return item['writeKey'] === undefined ? message : { ...message, writeKey: undefined }
}

/**
 * A client that sends both (Rudder's) says in `timestamp` what its caller gave, in `originalTimestamp` when
 * that was.
 */
function happenedAt({ timestamp, originalTimestamp }: JsonObject): unknown {
  return isAbsent(timestamp) ? originalTimestamp : timestamp
}

/** A message that says itself when it was sent has an occasion of its own. */
function occasionOfItem({ sentAt }: JsonObject, shared: Occasion): Occasion {
  return sentAt === undefined || sentAt === null ? shared : occasionOf(sentAt, shared.arrival)
}

type Written = { readonly ok: true; readonly text: string; readonly bytes: number }

/** What the batch says for all stands behind the message's other fields, as it was written once. */
function write(message: Message, { context, integrations, limits }: ItemContext): Written | LeftOut {
  const fault = context?.fault ?? integrations?.fault
  if (fault !== undefined) return leaveOut(fault)
  const weighed = measureStructure(message, limits)
  if (!weighed.ok) return leaveOut(weighed.fault)
  const shared = [
    ...splice('context', context, message.context),
    ...splice('integrations', integrations, message.integrations),
  ]
  // As a field that isn't there, `undefined` is not written.
  if (context !== undefined) message.context = undefined
  if (integrations !== undefined) message.integrations = undefined
  const own = JSON.stringify(message)
  if (shared.length === 0) return { ok: true, text: own, bytes: Buffer.byteLength(own) }
  const start = { text: own.slice(0, -1), bytes: Buffer.byteLength(own), keys: weighed.keys }
  const { text, bytes, keys } = shared.reduce(join, start)
  return keys > limits.maxKeys ? leaveOut('too_many_keys') : { ok: true, text: `${text}}`, bytes }
}

/** The engine keeps the texts as they are, and copies them once they are sent. */
function join(one: WrittenObject, next: WrittenObject): WrittenObject {
  return { text: one.text + next.text, bytes: one.bytes + next.bytes, keys: one.keys + next.keys }
}

/** Behind another member, with a name of ASCII. */
function splice(name: string, shared: SharedObject | undefined, own: unknown): WrittenObject[] {
  if (shared === undefined) return []
  const { text, bytes, keys } = shared.with(own)
  const before = `,"${name}":`
  return [{ text: `${before}${text}`, bytes: before.length + bytes, keys }]
}

const kinds: ReadonlySet<unknown> = new Set(trackingKinds)

export function isTrackingKind(value: unknown): value is TrackingKind {
  return kinds.has(value)
}

/**
 * `undefined` when the nesting is deeper than the stack: JSON.parse has no such limit, JSON.stringify has.
 */
export function tryStringify(value: JsonObject): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/**
 * Whether `text`, written of `value`, has null for a number that JSON.parse has read as infinite, such as
 * 1e999.
 */
export function losesNumbers(text: string, value: unknown): boolean {
  return text.includes('null') && holdsInfinite(value)
}

/** The limit is for what the client sent; what we add to it has a wider one. */
function isTooLarge(item: JsonObject, completeBytes: number): boolean {
  return (
    completeBytes > maxCompleteMessageBytes || Buffer.byteLength(tryStringify(item) ?? '') > maxMessageBytes
  )
}

function givenId({ messageId }: JsonObject): string | undefined {
  return typeof messageId === 'string' && messageId !== '' ? messageId : undefined
}
