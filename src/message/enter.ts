import { enterCanonical } from './canonical.ts'
import { type Entered, madeMessageId, type Origin } from './entered.ts'
import { holdsInfinite, parseJson } from './json.ts'
import { defaultLimits, type MessageLimits } from './limits.ts'
import { attributesFields, type Message, type MessageKind } from './message-schemas.ts'
import { type Excess, findExcess } from './structure.ts'
import { formatTimestamp, isCanonicalTimestamp } from './timestamp.ts'
import { isAbsent, refuse, validate, type Refusal } from './validate.ts'

export type EnterResult = { ok: true; message: Entered } | Refusal

/**
 * A message in the form in which receivers get it. It has the fields that the producer sent, and the fields
 * that every message has.
 */
type CanonicalMessage = {
  type: MessageKind
  /** The version. It is absent on a `delete`, unless the producer sent one. */
  version?: unknown
  messageId: string
  timestamp: string
  context: object
  userId?: string | null
  anonymousId?: string | null
  integrations?: Readonly<Record<string, unknown>> | null
  [field: string]: unknown
}

/**
 * The decoder of values. It removes a byte order mark at the start, which does no harm because the body is
 * written anew.
 */
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Brings a record's value into canonical form. Keeps all fields, and adds the following fields if they are
 * absent. Null and '' count as absent.
 *
 * - `version: 1`, except on a `delete`. If the version isn't a number, it is also replaced by 1.
 * - `context: {}`.
 * - `properties: {}` on `track`, `page` and `screen`, or `traits: {}` on `identify` and `group`.
 * - `timestamp`: the record's timestamp. A `timestamp` that is present is rewritten as
 *   `YYYY-MM-DDTHH:mm:ss.sssZ`.
 * - `messageId`, made from topic, partition and offset.
 * - The second spelling of each id of an alias (`userId` and `User ID`, `previousId` and `Previous ID`).
 *
 * Numbers are changed as JSON.parse and JSON.stringify change them. If a number becomes infinite, the message
 * is refused, because JSON.stringify would write null. A message over a limit is refused too. The limit on
 * bytes applies to the value and also to the body. The body can be longer than the value, because for example
 * 1e20 is written with all of its digits.
 *
 * Never throws, whatever the bytes are. If the value is a `body` that an earlier call returned, the result
 * has the same `body`.
 */
export function enter(
  value: Uint8Array | null,
  origin: Origin,
  limits: MessageLimits = defaultLimits,
): EnterResult {
  if (value === null || value.length === 0) {
    return refuse('empty_value', 'Send a message as the value of the record: it has none.')
  }
  if (value.length > limits.maxBytes) {
    return refuse('body_too_large', `Send less: the message is over ${limits.maxBytes} bytes.`)
  }
  const short = enterCanonical(value, origin, limits)
  return short === undefined ? enterParsed(value, origin, limits) : { ok: true, message: short }
}

/**
 * Brings a record's value into canonical form by parsing it. This works for all messages, but costs several
 * times as much as `enterCanonical`. `value` must not be longer than `maxBytes`.
 */
export function enterParsed(value: Uint8Array, origin: Origin, limits: MessageLimits): EnterResult {
  const text = decode(value)
  if (text === undefined) return refuse('not_utf8', 'Send the value as UTF-8.')
  const parsed = parseJson(text)
  if (!parsed.ok) return refuse('not_json', 'Send the value as one JSON object, and nothing else.')
  const validated = validate(parsed.value)
  if (!validated.ok) return validated

  const timestampMs = validated.timestampMs ?? origin.timestampMs
  const timestamp = spellTimestamp(validated.message.timestamp, timestampMs)
  if (timestamp === undefined) {
    return refuse('bad_timestamp', "Send a timestamp: the record's own isn't within the years 0000 to 9999.")
  }
  const message = complete(validated.message, timestamp, origin)
  const excess = findExcess(text, message, limits)
  if (excess !== undefined) return refuseExcess(excess, limits)

  const json = JSON.stringify(message)
  // JSON.stringify writes an infinite number as null. So if the JSON of a message has no null, the message
  // contains no infinite number.
  if (json.includes('null') && holdsInfinite(message)) {
    return refuse('number_out_of_range', 'Send numbers up to 1.7e308, and larger ones as strings.')
  }
  const body = Buffer.from(json)
  if (body.length > limits.maxBytes) {
    return refuse('body_too_large', `Send less: written out, the message is over ${limits.maxBytes} bytes.`)
  }
  const { type, messageId } = message
  const isIdGiven = !isAbsent(validated.message.messageId)
  const integrations = message.integrations ?? undefined
  return { ok: true, message: { type, messageId, isIdGiven, integrations, body } }
}

function decode(value: Uint8Array): string | undefined {
  try {
    return utf8.decode(value)
  } catch {
    return undefined
  }
}

function refuseExcess(excess: Excess, { maxDepth, maxKeys }: MessageLimits): Refusal {
  switch (excess) {
    case 'nested_too_deep':
      return refuse(excess, `Send at most ${maxDepth} levels of nested arrays and objects.`)
    case 'too_many_keys':
      return refuse(excess, `Send at most ${maxKeys} keys, those of all objects together.`)
  }
}

function spellTimestamp(sent: string | null | undefined, timestampMs: number): string | undefined {
  return !isAbsent(sent) && isCanonicalTimestamp(sent) ? sent : formatTimestamp(timestampMs)
}

function complete(sent: Message, timestamp: string, origin: Origin): CanonicalMessage {
  const { type } = sent
  const head = type === 'delete' ? { type } : { version: 1, type }
  // The producer's fields are spread and never assigned by name, because an assignment to `__proto__` would
  // set the prototype.
  const message: CanonicalMessage = {
    ...head,
    ...sent,
    timestamp,
    messageId: isAbsent(sent.messageId) ? madeMessageId(origin) : sent.messageId,
    context: sent.context ?? {},
  }
  if (type !== 'delete' && typeof message.version !== 'number') message.version = 1
  const attributes = attributesFields[type]
  if (attributes !== undefined) message[attributes] ??= {}
  if (sent.type === 'alias') {
    const userId = isAbsent(sent.userId) ? sent['User ID'] : sent.userId
    const previousId = isAbsent(sent.previousId) ? sent['Previous ID'] : sent.previousId
    Object.assign(message, {
      userId,
      previousId,
      'User ID': isAbsent(sent['User ID']) ? userId : sent['User ID'],
      'Previous ID': isAbsent(sent['Previous ID']) ? previousId : sent['Previous ID'],
    })
  }
  return message
}
