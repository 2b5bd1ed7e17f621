import { isUtf8 } from 'node:buffer'
import { enterCanonical } from './canonical.ts'
import { complete } from './complete.ts'
import type { Entered, Origin } from './entered.ts'
import { readIntegrations } from './integrations.ts'
import { skipSpace, startOf } from './json/json-skip.ts'
import { defaultLimits, type MessageLimits } from './limits.ts'
import { outlineOf, textOf, writeOutline } from './message-outline.ts'
import { respell, respelledText } from './json/respell.ts'
import { mostTidied, tidiedBytes, tidy } from './json/tidy.ts'
import { type Excess, findOutlineExcess, outlineHoldsInfinite } from './depth-and-keys.ts'
import { isAbsent, refuse, validate, type Refusal } from './validate.ts'

export type EnterResult = { ok: true; message: Entered } | Refusal

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
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  if (!isUtf8(bytes)) return refuse('not_utf8', 'Send the value as UTF-8.')
  const short = enterCanonical(bytes, origin, limits) ?? enterTidied(bytes, origin, limits)
  return short === undefined ? enterRespelled(bytes, origin, limits) : { ok: true, message: short }
}

/** Brings a record's value into canonical form by tidying it, if that is enough. */
function enterTidied(value: Buffer, origin: Origin, limits: MessageLimits): Entered | undefined {
  if (value.length > mostTidied) return undefined
  const tidied = tidy(value, skipSpace(value, startOf(value)))
  // If nothing was left out, the value was canonical, and the short way isn't open to it.
  if (tidied === undefined || tidied.length === value.length) return undefined
  if (skipSpace(value, tidied.end) !== value.length) return undefined
  return enterCanonical(tidiedBytes(tidied.length), origin, limits)
}

/**
 * Brings a record's value into canonical form by respelling it. This works for all messages, but costs more
 * than `enterCanonical`. The value must be UTF-8, and no longer than `maxBytes`.
 */
function enterRespelled(value: Buffer, origin: Origin, limits: MessageLimits): EnterResult {
  const respelled = respell(value, startOf(value), limits)
  if (respelled === undefined || skipSpace(value, respelled.end) !== value.length) {
    return refuse('not_json', 'Send the value as one JSON object, and nothing else.')
  }
  const text = respelledText()
  const validated = validate(text.startsWith('{') ? outlineOf(text) : undefined)
  if (!validated.ok) return validated

  const message = complete(validated, origin)
  if (message === undefined) {
    return refuse('bad_timestamp', "Send a timestamp: the record's own isn't within the years 0000 to 9999.")
  }
  const excess = findOutlineExcess({ bytes: value.length, levels: respelled.levels }, message, limits)
  if (excess !== undefined) return refuseExcess(excess, limits)
  if (respelled.hasInfinite && outlineHoldsInfinite(message)) {
    return refuse('number_out_of_range', 'Send numbers up to 1.7e308, and larger ones as strings.')
  }
  const body = Buffer.from(writeOutline(message))
  if (body.length > limits.maxBytes) {
    return refuse('body_too_large', `Send less: written out, the message is over ${limits.maxBytes} bytes.`)
  }
  const { type, messageId, integrations } = message
  const isIdGiven = !isAbsent(validated.message.messageId)
  const read = isAbsent(integrations) ? undefined : readIntegrations(textOf(integrations))
  return { ok: true, message: { type, messageId, isIdGiven, integrations: read, body } }
}

function refuseExcess(excess: Excess, { maxDepth, maxKeys }: MessageLimits): Refusal {
  switch (excess) {
    case 'nested_too_deep':
      return refuse(excess, `Send at most ${maxDepth} levels of nested arrays and objects.`)
    case 'too_many_keys':
      return refuse(excess, `Send at most ${maxKeys} keys, those of all objects together.`)
  }
}
