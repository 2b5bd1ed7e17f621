import { isUtf8 } from 'node:buffer'
import { gunzipSync } from 'node:zlib'
import { parseJson } from '../message/json.ts'
import { countLostDigits } from './lost-digits.ts'
import { replaceNonNumbers } from './non-numbers.ts'

/**
 * A JSON object that a client sent. It may have a key `__proto__`, which is a field like any other. So spread
 * such an object, and never assign its fields by name.
 */
export type JsonObject = { readonly [field: string]: unknown }

/** The reason why a body can't be read. */
export type BodyFault = 'too_large' | 'bad_gzip' | 'not_utf8' | 'not_json' | 'not_an_object'

/** The object that was read from a body, with those faults for which the gateway doesn't refuse the body. */
export type AcceptedBody = {
  readonly ok: true
  readonly body: JsonObject
  /** The length of the inflated text in bytes. */
  readonly bytes: number
  /**
   * The messages that contained NaN or Infinity, by their indexes in the list `batch`. In these messages,
   * null replaces such values.
   */
  readonly spoiled: ReadonlySet<number>
  /** The number of whole numbers beyond 2^53 that lost digits. */
  readonly lostDigits: number
}

export type ReadBody = AcceptedBody | { readonly ok: false; readonly fault: BodyFault }

const none: ReadonlySet<number> = new Set()

/**
 * Reads the body of a request: JSON, plain or in gzip. The first two bytes decide whether the body is gzip.
 * The headers don't decide, because some clients send gzip with the content type of a form, and some proxies
 * inflate a body without changing its header. A body that inflates to more than `maxBytes` is `too_large`,
 * and inflating stops at that size. Never throws.
 */
export function readBody(sent: Buffer, maxBytes: number): ReadBody {
  const inflated = inflateBody(sent, maxBytes)
  return inflated.ok ? readInflated(inflated.bytes) : inflated
}

export type Inflated =
  | { readonly ok: true; readonly bytes: Buffer }
  | { readonly ok: false; readonly fault: BodyFault }

/** Inflates a body if it is gzip. This is the first half of `readBody`. */
export function inflateBody(sent: Buffer, maxBytes: number): Inflated {
  const inflated = isGzip(sent) ? inflate(sent, maxBytes) : { ok: true as const, bytes: sent }
  return inflated.ok && inflated.bytes.length > maxBytes ? { ok: false, fault: 'too_large' } : inflated
}

/**
 * Parses an inflated body. This is the second half of `readBody`. If `isBatch` is true, the messages of the
 * list `batch` that contain NaN or Infinity are added to `spoiled`, and the body is still accepted.
 */
export function readInflated(bytes: Buffer, { isBatch = false } = {}): ReadBody {
  if (!isUtf8(bytes)) return { ok: false, fault: 'not_utf8' }
  const text = textOf(bytes)
  const parsed = parse(text, isBatch)
  if (!parsed.ok) return { ok: false, fault: 'not_json' }
  if (!isJsonObject(parsed.value)) return { ok: false, fault: 'not_an_object' }
  const { value: body, spoiled } = parsed
  return { ok: true, body, bytes: bytes.length, spoiled, lostDigits: countLostDigits(text) }
}

function parse(
  text: string,
  isBatch: boolean,
): { ok: true; value: unknown; spoiled: ReadonlySet<number> } | { ok: false } {
  const whole = parseJson(text)
  if (whole.ok) return { ...whole, spoiled: none }
  const mended = isBatch ? replaceNonNumbers(text) : undefined
  if (mended === undefined) return { ok: false }
  const parsed = parseJson(mended.text)
  return parsed.ok ? { ...parsed, spoiled: mended.items } : parsed
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Returns true if the bytes begin with gzip's magic number (RFC 1952). No JSON text begins with these bytes.
 */
function isGzip(bytes: Buffer): boolean {
  return bytes.length > 2 && bytes[0] === 0x1f && bytes[1] === 0x8b
}

/**
 * Inflates synchronously, not in libuv's threads. Threads would gain little, because the main thread has to
 * parse the result, and parsing takes as long as inflating. And many inflations at the same time would need
 * much memory.
 */
function inflate(sent: Buffer, maxBytes: number): Inflated {
  try {
    return {
      ok: true,
      bytes: gunzipSync(sent, { maxOutputLength: maxBytes, chunkSize: pieceBytes(sent, maxBytes) }),
    }
  } catch (error) {
    const isTooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
    return { ok: false, fault: isTooLarge ? 'too_large' : 'bad_gzip' }
  }
}

const leastPieceBytes = 16 * 1_024

/**
 * Returns the size of zlib's output buffer. The last four bytes of a gzip body contain the inflated length
 * (RFC 1952, ISIZE). With a buffer of this size, the output comes in one piece. A false length costs no more
 * than a body that really has this length.
 */
function pieceBytes(sent: Buffer, maxBytes: number): number {
  const said = sent.length < 4 ? 0 : sent.readUInt32LE(sent.length - 4)
  // One byte more than the length, because zlib asks for another buffer when its output fills a buffer.
  return Math.max(leastPieceBytes, Math.min(said, maxBytes) + 1)
}

/** Decodes UTF-8. Leaves out a byte order mark, because JSON doesn't allow it. */
function textOf(bytes: Buffer): string {
  const hasMark = bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return bytes.toString('utf8', hasMark ? 3 : 0)
}
