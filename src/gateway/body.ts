import { isUtf8 } from 'node:buffer'
import { gunzipSync } from 'node:zlib'
import { parseJson } from '../message/json.ts'
import { countLostDigits } from './lost-digits.ts'
import { replaceNonNumbers } from './non-numbers.ts'

/** A JSON object that a stranger wrote. A key `__proto__` is a field like any other: only ever spread it. */
export type JsonObject = { readonly [field: string]: unknown }

/** Why a body can't be read. */
export type BodyFault = 'too_large' | 'bad_gzip' | 'not_utf8' | 'not_json' | 'not_an_object'

/** An object, with what was wrong with it all the same. */
export type AcceptedBody = {
  readonly ok: true
  readonly body: JsonObject
  /** Of the text, inflated. */
  readonly bytes: number
  /** Of the list `batch`: the places of messages in which NaN or Infinity stood, which are null now. */
  readonly spoiled: ReadonlySet<number>
  /** Whole numbers beyond 2^53 that lost digits. */
  readonly lostDigits: number
}

export type ReadBody = AcceptedBody | { readonly ok: false; readonly fault: BodyFault }

const none: ReadonlySet<number> = new Set()

/**
 * Reads the body of a request: JSON, plain or in gzip. What it is shows from its first two bytes, since some
 * clients compress under the form type and some proxies inflate without telling. One over `maxBytes` inflated
 * is `too_large`, and no more than that is ever inflated. Never throws.
 */
export function readBody(sent: Buffer, maxBytes: number): ReadBody {
  const inflated = inflateBody(sent, maxBytes)
  return inflated.ok ? readInflated(inflated.bytes) : inflated
}

export type Inflated =
  | { readonly ok: true; readonly bytes: Buffer }
  | { readonly ok: false; readonly fault: BodyFault }

/** The first half of `readBody`. */
export function inflateBody(sent: Buffer, maxBytes: number): Inflated {
  const inflated = isGzip(sent) ? inflate(sent, maxBytes) : { ok: true as const, bytes: sent }
  return inflated.ok && inflated.bytes.length > maxBytes ? { ok: false, fault: 'too_large' } : inflated
}

/**
 * The second half of `readBody`. With `isBatch`, NaN and Infinity within a message of the list `batch` spoil
 * that one alone.
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

/** The magic number of RFC 1952: no JSON text begins so. */
function isGzip(bytes: Buffer): boolean {
  return bytes.length > 2 && bytes[0] === 0x1f && bytes[1] === 0x8b
}

/**
 * At once, and not in libuv's threads: parsing what comes out takes as long, and many at a time would cost
 * memory.
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
 * Its end says how long it is inflated (RFC 1952, ISIZE), so that it comes out in one piece. A lie costs no
 * more than a body that is so long.
 */
function pieceBytes(sent: Buffer, maxBytes: number): number {
  const said = sent.length < 4 ? 0 : sent.readUInt32LE(sent.length - 4)
  // One that fills its piece makes zlib ask for another.
  return Math.max(leastPieceBytes, Math.min(said, maxBytes) + 1)
}

/** Without a byte order mark, which is no JSON. */
function textOf(bytes: Buffer): string {
  const hasMark = bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return bytes.toString('utf8', hasMark ? 3 : 0)
}
