import { complete } from '../../src/message/complete.ts'
import type { EnterResult } from '../../src/message/enter.ts'
import type { Origin } from '../../src/message/entered.ts'
import { readIntegrations } from '../../src/message/integrations.ts'
import { holdsInfinite, parseJson } from '../../src/message/json/json.ts'
import type { MessageLimits } from '../../src/message/limits.ts'
import { findExcess } from '../../src/message/depth-and-keys.ts'
import { isAbsent, validate } from '../../src/message/validate.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** What `enter` returns, without the detail of a refusal. */
type Meaning = Extract<EnterResult, { ok: true }> | { ok: false; reason: string }

/** Returns a result of `enter` in the form of a result of `enterParsed`. */
export function meaningOf(result: EnterResult): Meaning {
  return result.ok ? result : { ok: false, reason: result.reason }
}

function refuse(reason: string): Meaning {
  return { ok: false, reason }
}

/**
 * Returns what `enter` has to return for a value, found by parsing the value and writing it again. `enter`
 * makes no values, so this is another way to the same result.
 */
export function enterParsed(value: Uint8Array, origin: Origin, limits: MessageLimits): Meaning {
  const text = decode(value)
  if (text === undefined) return refuse('not_utf8')
  const parsed = parseJson(text)
  if (!parsed.ok) return refuse('not_json')
  const validated = validate(parsed.value)
  if (!validated.ok) return refuse(validated.reason)
  const message = complete(validated, origin)
  if (message === undefined) return refuse('bad_timestamp')
  const excess = findExcess(text, message, limits)
  if (excess !== undefined) return refuse(excess)
  const json = JSON.stringify(message)
  if (holdsInfinite(message)) return refuse('number_out_of_range')
  const body = Buffer.from(json)
  if (body.length > limits.maxBytes) return refuse('body_too_large')
  const { type, messageId, integrations } = message
  const isIdGiven = !isAbsent(validated.message.messageId)
  const read = isAbsent(integrations) ? undefined : readIntegrations(JSON.stringify(integrations))
  return { ok: true, message: { type, messageId, isIdGiven, integrations: read, body } }
}

function decode(value: Uint8Array): string | undefined {
  try {
    return utf8.decode(value)
  } catch {
    return undefined
  }
}
