import { parseJson } from '../../message/json/json.ts'
import type { MessageLimits } from '../../message/limits.ts'
import { findExcess } from '../../message/depth-and-keys.ts'
import type { AudienceDeadReason } from '../../message/dead-letter-reasons.ts'
import { parseTimestamp } from '../../message/timestamp.ts'

export type JsonFields = Readonly<Record<string, unknown>>

/**
 * Reads the value of a record that an upstream program wrote. The value must be one JSON object within the
 * limits. Never throws.
 */
export function readJson(
  value: Uint8Array | null,
  limits: MessageLimits,
): { ok: true; fields: JsonFields } | AudienceRefusal {
  if (value === null || value.length === 0) {
    return refusal('empty_value', 'Send a JSON object as the value of the record: it has none.')
  }
  if (value.length > limits.maxBytes) {
    return refusal('body_too_large', `Send less in one record: it is over ${limits.maxBytes} bytes.`)
  }
  const text = decode(value)
  if (text === undefined) return refusal('not_utf8', 'Send the value as UTF-8.')
  const parsed = parseJson(text)
  if (!parsed.ok || !isFields(parsed.value)) {
    return refusal('not_json', 'Send the value as one JSON object, and nothing else.')
  }
  switch (findExcess(text, parsed.value, limits)) {
    case 'nested_too_deep':
      return refusal(
        'nested_too_deep',
        `Send at most ${limits.maxDepth} levels of nested arrays and objects.`,
      )
    case 'too_many_keys':
      return refusal('too_many_keys', `Send at most ${limits.maxKeys} keys, those of all objects together.`)
    case undefined:
      return { ok: true, fields: parsed.value }
  }
}

/** The decoder of values. It removes a byte order mark at the start. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

function decode(value: Uint8Array): string | undefined {
  try {
    return utf8.decode(value)
  } catch {
    return undefined
  }
}

function isFields(value: unknown): value is JsonFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * The refusal of a record. `detail` is one sentence that tells the producer what is wrong and what to do. The
 * sentence quotes nothing from the record except the names of fields.
 */
export type AudienceRefusal = { ok: false; reason: AudienceDeadReason; detail: string }

export function refusal(reason: AudienceDeadReason, detail: string): AudienceRefusal {
  return { ok: false, reason, detail }
}

type SchemaError = { keyword: string; instancePath: string; message: string }

/** Describes the first field that violates a schema. */
export function faultOf(errors: readonly SchemaError[]): string {
  const [first] = errors
  const path = (first?.instancePath ?? '').slice(1).replaceAll('/', '.').slice(0, maxNameCharacters)
  // TypeBox reports an unknown field as a violation of the schema `false`.
  const fault =
    first?.keyword === 'boolean' ? 'is not a known field' : (first?.message ?? 'is not as it has to be')
  return `${path === '' ? 'the value' : path} ${fault.slice(0, maxFaultCharacters)}`
}

const maxNameCharacters = 100

const maxFaultCharacters = 200

/** Limit on the time by which a producer's clock may be ahead of the broker's clock, in milliseconds. */
export const mostAheadMs = 5 * 60_000

/**
 * Reads a time of a record that an upstream program wrote. Refuses a time that is more than `mostAheadMs`
 * after `appendedMs`, which is the append time by the broker's clock. With such a time, the record's value
 * would replace all values that come about before that time. Never throws.
 */
export function readTime(
  field: string,
  text: string,
  appendedMs: number,
): { ok: true; ms: number } | AudienceRefusal {
  const ms = parseTimestamp(text)
  if (ms === undefined) {
    return refusal(
      'bad_timestamp',
      `Send ${field} as ISO 8601, such as 2009-11-10T23:00:00.000Z: it is no time.`,
    )
  }
  if (ms - appendedMs > mostAheadMs) {
    return refusal(
      'ahead_of_time',
      `Set the producer's clock: ${field} is more than ${mostAheadMs / 60_000} minutes ahead of the broker's.`,
    )
  }
  return { ok: true, ms }
}
