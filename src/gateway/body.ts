import { isUtf8 } from 'node:buffer'
import { gunzipSync } from 'node:zlib'
import { parseJson } from '../message/json.ts'

/** A JSON object that a stranger wrote. A key `__proto__` is a field like any other: only ever spread it. */
export type JsonObject = { readonly [field: string]: unknown }

/** Why a body can't be read. */
export type BodyFault = 'too_large' | 'bad_gzip' | 'not_utf8' | 'not_json' | 'not_an_object'

export type ReadBody = { ok: true; body: JsonObject; bytes: number } | { ok: false; fault: BodyFault }

/**
 * Reads the body of a request: JSON, plain or in gzip. What it is shows from its first two bytes, since some clients
 * compress under the form type and some proxies inflate without telling. `bytes` is its size inflated; one over
 * `maxBytes` is `too_large`, and no more than that is ever inflated. Never throws.
 */
export function readBody(sent: Buffer, maxBytes: number): ReadBody {
  const inflated = isGzip(sent) ? inflate(sent, maxBytes) : { ok: true as const, bytes: sent }
  if (!inflated.ok) return inflated
  const { bytes } = inflated
  if (bytes.length > maxBytes) return { ok: false, fault: 'too_large' }
  if (!isUtf8(bytes)) return { ok: false, fault: 'not_utf8' }
  const parsed = parseJson(textOf(bytes))
  if (!parsed.ok) return { ok: false, fault: 'not_json' }
  if (!isJsonObject(parsed.value)) return { ok: false, fault: 'not_an_object' }
  return { ok: true, body: parsed.value, bytes: bytes.length }
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The magic number of RFC 1952: no JSON text begins so. */
function isGzip(bytes: Buffer): boolean {
  return bytes.length > 2 && bytes[0] === 0x1f && bytes[1] === 0x8b
}

/** At once, and not in libuv's threads: parsing what comes out takes as long, and many at a time would cost memory. */
function inflate(
  sent: Buffer,
  maxBytes: number,
): { ok: true; bytes: Buffer } | { ok: false; fault: BodyFault } {
  try {
    return { ok: true, bytes: gunzipSync(sent, { maxOutputLength: maxBytes }) }
  } catch (error) {
    const isTooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
    return { ok: false, fault: isTooLarge ? 'too_large' : 'bad_gzip' }
  }
}

/** Without a byte order mark, which is no JSON. */
function textOf(bytes: Buffer): string {
  const hasMark = bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return bytes.toString('utf8', hasMark ? 3 : 0)
}
