import { isUtf8 } from 'node:buffer'
import { gunzipSync } from 'node:zlib'
import { parseJson } from '../message/json.ts'
import { countLostDigits } from './lost-digits.ts'
import { replaceNonNumbers } from './non-numbers.ts'

/**
 * A JSON object that a client sent. It may have a field `__proto__`. So copy its fields with the spread
 * syntax, and never assign them by name.
 */
export type JsonObject = { readonly [field: string]: unknown }

/** The reason why a body can't be read. */
export type BodyFault = 'too_large' | 'bad_gzip' | 'not_utf8' | 'not_json' | 'not_an_object'

/** The object that was read from a body, with the faults that the gateway tolerates. */
export type AcceptedBody = {
  readonly ok: true
  readonly body: JsonObject
  /** The length of the inflated text in bytes. */
  readonly bytes: number
  /**
   * The indexes (in the list `batch`) of the messages that contained NaN or Infinity. In the object, null
   * replaces these values.
   */
  readonly spoiled: ReadonlySet<number>
  /** The number of whole numbers beyond 2^53 that lost digits. */
  readonly lostDigits: number
}

export type ReadBody = AcceptedBody | { readonly ok: false; readonly fault: BodyFault }

const none: ReadonlySet<number> = new Set()

/**
 * Reads the body of a request: JSON, plain or in gzip. The first two bytes tell whether the body is gzip. The
 * headers aren't reliable, because some clients send gzip with the content type of a form, and some proxies
 * inflate a body without changing its header. If a body inflates to more than `maxBytes`, inflating stops,
 * and the body is `too_large`. Never throws.
 */
export function readBody(sent: Buffer, maxBytes: number): ReadBody {
  const inflated = inflateBody(sent, maxBytes)
  return inflated.ok ? readInflated(inflated.bytes) : inflated
}

export type Inflated =
  | { readonly ok: true; readonly bytes: Buffer }
  | { readonly ok: false; readonly fault: BodyFault }

/** If a body is gzip, inflates it. This is the first half of `readBody`. */
export function inflateBody(sent: Buffer, maxBytes: number): Inflated {
  const inflated = isGzip(sent) ? inflate(sent, maxBytes) : { ok: true as const, bytes: sent }
  return inflated.ok && inflated.bytes.length > maxBytes ? { ok: false, fault: 'too_large' } : inflated
}

/**
 * Parses an inflated body. This is the second half of `readBody`. If `isBatch` is true, a body whose messages
 * contain NaN or Infinity is still accepted, and the result's `spoiled` names these messages.
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
 * parse the result, which takes as long as inflating. Besides, many inflations at the same time would need
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
 * (RFC 1952, ISIZE). With a buffer of this length, the output comes in one piece. If a client states a false
 * length, this costs no more than a body that really has this length.
 */
function pieceBytes(sent: Buffer, maxBytes: number): number {
  const said = sent.length < 4 ? 0 : sent.readUInt32LE(sent.length - 4)
  // The buffer has one more byte, because zlib asks for another buffer as soon as its output fills the first.
  return Math.max(leastPieceBytes, Math.min(said, maxBytes) + 1)
}

/** Decodes UTF-8. Leaves out a byte order mark, because JSON doesn't allow it. */
function textOf(bytes: Buffer): string {
  const hasMark = bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return bytes.toString('utf8', hasMark ? 3 : 0)
}
