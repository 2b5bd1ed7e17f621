import { parseJson } from '../message/json.ts'
import type { MessageLimits } from '../message/limits.ts'
import { findExcess } from '../message/structure.ts'
import { type AudienceRefusal, refusal } from './refusal.ts'

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
