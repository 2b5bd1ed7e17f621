import { randomUUID } from 'node:crypto'
import { enter } from '../../message/enter.ts'
import type { MessageLimits } from '../../message/limits.ts'
import type { RefusalReason } from '../../message/dead-letter-reasons.ts'
import type { MessageKind } from '../../message/message-schemas.ts'
import { outlineOf, RawList, RawObject, writeOutline, type Outline } from '../../message/message-outline.ts'
import { measureStructure } from '../../message/depth-and-keys.ts'
import { isAbsent, validate } from '../../message/validate.ts'
import { isJsonObject, type JsonObject } from './body.ts'
import { correctTimestamp, type Occasion, occasionOf } from './clock.ts'
import { maxCompleteMessageBytes, maxMessageBytes } from './request-limits.ts'
import type { LeftOutReason } from './left-out-reasons.ts'
import type { SharedObject, WrittenObject } from './shared-object.ts'
import { partitionKey } from '../../message/partitioner.ts'

/**
 * The kinds of message that may be sent with a write key. `delete` is not one of them, because write keys are
 * public.
 */
export const trackingKinds = [
  'identify',
  'track',
  'page',
  'screen',
  'group',
  'alias',
] as const satisfies readonly MessageKind[]
export type TrackingKind = (typeof trackingKinds)[number]

/** The values that are the same for all messages of a request. */
export type ItemContext = Occasion & {
  /**
   * The kind in the path of the request. It takes precedence over the message's `type`. `undefined` for a
   * batch.
   */
  readonly kind: TrackingKind | undefined
  readonly context: SharedObject | undefined
  readonly integrations: SharedObject | undefined
  /**
   * The worker's limits. A message over a limit is left out here, because at the worker it would only become
   * a dead letter.
   */
  readonly limits: MessageLimits
}

/** A message that can go to Kafka. */
export type ReadyMessage = {
  readonly ok: true
  readonly kind: TrackingKind
  readonly key: string
  /**
   * The value of the message's record, as JSON.stringify writes it. If this is a buffer, it contains the text
   * in UTF-8.
   */
  readonly value: string | Buffer
  /** The length of `value` in UTF-8, in bytes. */
  readonly bytes: number
  /** The `messageId` from the client. `undefined` if the gateway generated the message's id. */
  readonly givenId: string | undefined
}

export type CheckedItem = ReadyMessage | LeftOut

/**
 * Builds a message from an item that a client sent, or returns the reason why the item is left out. `sent` is
 * the item's outline. Never throws. It changes the message in these ways:
 *
 * - It adds `type` (from the path), `messageId` (if absent), `receivedAt` and `sentAt` (from the batch).
 * - It corrects `timestamp` for the error of the client's clock, and adds `originalTimestamp`, the client's
 *   time before this correction.
 * - It merges the batch's `context` and `integrations` into those of the message, field by field. If both
 *   have a field, the message's own field stays.
 * - It removes a `writeKey`.
 * - If a field that must be an object is an empty list, it becomes an empty object (`isEmptyList`).
 */
export function checkItem(sent: unknown, surroundings: ItemContext): CheckedItem {
  if (!isJsonObject(sent)) return leaveOut('not_an_object')
  const item = withEmptyObjects(sent)
  const { kind = item['type'], limits } = surroundings
  if (!isTrackingKind(kind)) return leaveOut('unknown_type')

  const message = complete(item, kind, surroundings)
  const validated = validate(message)
  if (!validated.ok) return leaveOut(validated.reason, validated.detail)
  const key = partitionKey(validated.message)
  if (key === undefined) return leaveOut('no_user_anon_id')

  const timestamp = correctTimestamp(happenedAt(item), occasionOfItem(item, surroundings))
  if (timestamp === undefined) return leaveOut('bad_timestamp')

  message.timestamp = timestamp
  const written = write(message, surroundings)
  if (!written.ok) return written
  const { text, bytes, keys } = written
  if (bytes > maxMessageBytes && isTooLarge(item, bytes)) return leaveOut('message_too_large')
  if (bytes > limits.maxBytes) return leaveOut('body_too_large')
  if (mayGrowTooLarge(bytes, limits) || keys > limits.maxKeys - mostWorkerKeys) {
    const own = withoutShared(message, item, surroundings)
    const refusal = refusalByWorker(own, { key, bytes, sharedKeys: written.sharedKeys }, surroundings)
    if (refusal !== undefined) return leaveOut(refusal)
  }
  return { ok: true, kind, key, value: text, bytes, givenId: givenId(item) }
}

/** `detail`: what is wrong and what to do, in one sentence that never quotes the message. */
type LeftOut = { readonly ok: false; readonly reason: LeftOutReason; readonly detail?: string }

function leaveOut(reason: LeftOutReason, detail?: string): LeftOut {
  return detail === undefined ? { ok: false, reason } : { ok: false, reason, detail }
}

/** Returns true for an empty list. PHP writes an empty array as one, also where it means an empty object. */
export function isEmptyList(value: unknown): boolean {
  // The list of an outline is always empty itself.
  return Array.isArray(value) && (value instanceof RawList ? value.text === '[]' : value.length === 0)
}

const objectFields = ['context', 'integrations', 'properties', 'traits'] as const

function withEmptyObjects(item: JsonObject): JsonObject {
  const empty = objectFields.filter((field) => isEmptyList(item[field]))
  if (empty.length === 0) return item
  return { ...item, ...Object.fromEntries(empty.map((field) => [field, new RawObject('{}')])) }
}

type Message = {
  [field: string]: unknown
  context: unknown
  integrations: unknown
  originalTimestamp: unknown
  timestamp: unknown
}

/**
 * Adds the gateway's fields to a message. The client's fields are spread and never assigned by name, because
 * an assignment to `__proto__` would set the prototype.
 */
function complete(item: JsonObject, kind: TrackingKind, { sentAt, arrival }: ItemContext): Message {
  const message = {
    ...item,
    type: kind,
    messageId: isAbsent(item['messageId']) ? randomUUID() : item['messageId'],
    context: item['context'],
    integrations: item['integrations'],
    originalTimestamp: item['originalTimestamp'] ?? item['timestamp'] ?? undefined,
    // The corrected time is filled in later. It is computed from the client's time in `item`.
    timestamp: undefined,
    sentAt: item['sentAt'] ?? sentAt ?? undefined,
    receivedAt: arrival.text,
  }
  return item['writeKey'] === undefined ? message : { ...message, writeKey: undefined }
}

/**
 * Returns the time of a message by the client's clock. Rudder's clients send both fields: `timestamp` is the
 * time that the caller gave, and `originalTimestamp` is the time of the call.
 */
function happenedAt({ timestamp, originalTimestamp }: JsonObject): unknown {
  return isAbsent(timestamp) ? originalTimestamp : timestamp
}

/** Returns the times that complete one message. If it has no `sentAt` of its own, these are `shared`. */
function occasionOfItem({ sentAt }: JsonObject, shared: Occasion): Occasion {
  return sentAt === undefined || sentAt === null ? shared : occasionOf(sentAt, shared.arrival)
}

/** `sharedKeys`: the number of keys that come from the batch's shared objects. */
type Written = { readonly ok: true; readonly sharedKeys: number } & WrittenObject

/**
 * Limit on the keys that the worker adds to a complete message. It adds the version, and it may add the
 * attributes, or the second spellings of an alias's ids.
 */
const mostWorkerKeys = 3
/** Limit on the bytes of the fields that the worker adds, without the ids. */
const mostWorkerBytes = 100

/**
 * Returns true if a message of this length may be over `maxBytes` at the worker. The worker counts the
 * record's key too, and adds fields, among them the ids of an alias. The key and these ids are parts of the
 * message, so they are no longer than the message.
 */
export function mayGrowTooLarge(bytes: number, { maxBytes }: Pick<MessageLimits, 'maxBytes'>): boolean {
  return 3 * bytes + mostWorkerBytes > maxBytes
}

/**
 * Returns the JSON of a complete message without the shared objects of the batch. A field that is merged with
 * a shared object is an object in any case.
 */
function withoutShared(message: Message, item: JsonObject, { context, integrations }: ItemContext): string {
  const objectIn = (field: 'context' | 'integrations'): object => {
    const own = item[field]
    return isJsonObject(own) ? own : {}
  }
  return writeOutline({
    ...message,
    ...(context !== undefined && { context: objectIn('context') }),
    ...(integrations !== undefined && { integrations: objectIn('integrations') }),
  })
}

/**
 * If the worker would refuse a complete message because of its limits, returns the reason. `own` is the
 * message without the shared objects of the batch. The worker's code is run only on `own`, because its
 * additions to a message don't depend on the shared objects. So the cost doesn't grow with these objects,
 * which all messages of the batch have. But this function still costs as much as the worker's own work, so
 * call it only for messages that are close to a limit.
 */
function refusalByWorker(
  own: string,
  { key, bytes, sharedKeys }: { key: string; bytes: number; sharedKeys: number },
  { arrival, limits }: ItemContext,
): RefusalReason | undefined {
  const origin = { topic: '', partition: 0, offset: 0, timestampMs: arrival.ms }
  const ownBytes = Buffer.from(own)
  const entered = enter(ownBytes, origin, limits)
  if (!entered.ok) return entered.reason
  const { body } = entered.message
  const addedBytes = body.length - ownBytes.length
  if (Buffer.byteLength(key) + bytes + addedBytes > limits.maxBytes) return 'body_too_large'
  return keysIn(body) + sharedKeys > limits.maxKeys ? 'too_many_keys' : undefined
}

/** Counts the keys of a message in the form that the worker has given it. */
function keysIn(body: Buffer): number {
  const measured = measureStructure(outlineOf(body.toString()), { maxDepth: Infinity, maxKeys: Infinity })
  return measured.ok ? measured.keys : 0
}

/**
 * Writes a message as JSON. The shared objects of the batch, whose JSON was made only once for the whole
 * batch, come after the message's other fields.
 */
function write(message: Message, { context, integrations, limits }: ItemContext): Written | LeftOut {
  const fault = context?.fault ?? integrations?.fault
  if (fault !== undefined) return leaveOut(fault)
  const weighed = measureStructure(message, limits)
  if (!weighed.ok) return leaveOut(weighed.fault)
  const shared = [
    ...splice('context', context, message.context),
    ...splice('integrations', integrations, message.integrations),
  ]
  // `writeOutline` leaves out fields that are `undefined`.
  if (context !== undefined) message.context = undefined
  if (integrations !== undefined) message.integrations = undefined
  const own = writeOutline(message)
  const { keys: ownKeys } = weighed
  if (shared.length === 0)
    return { ok: true, text: own, bytes: Buffer.byteLength(own), keys: ownKeys, sharedKeys: 0 }
  const start = { text: own.slice(0, -1), bytes: Buffer.byteLength(own), keys: ownKeys }
  const { text, bytes, keys } = shared.reduce(join, start)
  return keys > limits.maxKeys
    ? leaveOut('too_many_keys')
    : { ok: true, text: `${text}}`, bytes, keys, sharedKeys: keys - ownKeys }
}

/**
 * Joins two written objects. The JavaScript engine concatenates strings lazily, so the texts are copied only
 * when they are sent.
 */
function join(one: WrittenObject, next: WrittenObject): WrittenObject {
  return { text: one.text + next.text, bytes: one.bytes + next.bytes, keys: one.keys + next.keys }
}

/**
 * Returns the text that adds a shared object as a member to a JSON object: a comma, the member's name (ASCII)
 * and its value. Returns an empty list if there is no shared object.
 */
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
 * Returns true if a message is over a limit. `maxMessageBytes` is the limit on the message as the client sent
 * it. `maxCompleteMessageBytes` is the limit on the message with everything that the gateway adds.
 */
function isTooLarge(item: JsonObject, completeBytes: number): boolean {
  return completeBytes > maxCompleteMessageBytes || Buffer.byteLength(writeOutline(item)) > maxMessageBytes
}

function givenId({ messageId }: JsonObject): string | undefined {
  return typeof messageId === 'string' && messageId !== '' ? messageId : undefined
}

/**
 * The type of the body that a path of the tracking API accepts: one message of this kind, or a batch of
 * messages of any kinds.
 */
export type Call = TrackingKind | 'batch'

/** The messages of a request, in their order. */
export type Items = {
  readonly length: number
  /** How many messages were completed from their outlines so far, which costs more than from their bytes. */
  readonly outlined: number
  /**
   * Returns the same as `checkItem` for a message. But if the message contained NaN or Infinity, returns the
   * reason `not_json`.
   */
  check(index: number, surroundings: ItemContext): CheckedItem
  /** Returns the outline of a message, or `undefined` if it is no object. */
  outlineAt(index: number): Outline | undefined
}
