import { isUtf8 } from 'node:buffer'
import { parseJson } from '../../message/json/json.ts'
import { startOf } from '../../message/json/json-skip.ts'
import { inflateBody } from './inflate-body.ts'

/**
 * A JSON object that a client sent. It may have a field `__proto__`. So copy its fields with the spread
 * syntax, and never assign them by name.
 */
export type JsonObject = { readonly [field: string]: unknown }

/**
 * The reason why a body can't be read. `too_dense`: it would cause too much work for the bytes that were
 * sent.
 */
export type BodyFault = 'too_large' | 'too_dense' | 'bad_gzip' | 'not_utf8' | 'not_json' | 'not_an_object'

export type ReadBody =
  | { readonly ok: true; readonly body: JsonObject }
  | { readonly ok: false; readonly fault: BodyFault }

/** Reads the body of a request as a whole: JSON, plain or in gzip. Never throws. */
export function readBody(sent: Buffer, maxBytes: number): ReadBody {
  const inflated = inflateBody(sent, maxBytes)
  if (!inflated.ok) return inflated
  const { bytes } = inflated
  if (!isUtf8(bytes)) return { ok: false, fault: 'not_utf8' }
  const parsed = parseJson(bytes.toString('utf8', startOf(bytes)))
  if (!parsed.ok) return { ok: false, fault: 'not_json' }
  return isJsonObject(parsed.value) ? { ok: true, body: parsed.value } : { ok: false, fault: 'not_an_object' }
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
