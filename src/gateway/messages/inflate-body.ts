import { constants, gunzipSync } from 'node:zlib'

export type Inflated =
  | { readonly ok: true; readonly bytes: Buffer }
  | { readonly ok: false; readonly fault: 'too_large' | 'too_dense' | 'bad_gzip' }

/**
 * If a body is gzip, inflates it. The first two bytes tell whether it is gzip. The headers aren't reliable,
 * because some clients send gzip with the content type of a form, and some proxies inflate a body without
 * changing its header. If a body inflates to more than `maxBytes`, inflating stops, and the body is
 * `too_large`. If it inflates to more than `mostInflated`, the body is `too_dense`. Never throws.
 */
export function inflateBody(sent: Buffer, maxBytes: number, mostInflated = Infinity): Inflated {
  const inflated = isGzip(sent) ? inflate(sent, maxBytes, mostInflated) : { ok: true as const, bytes: sent }
  return inflated.ok && inflated.bytes.length > maxBytes ? { ok: false, fault: 'too_large' } : inflated
}

/**
 * Returns true if the bytes begin with gzip's magic number (RFC 1952). No JSON text begins with these bytes.
 */
export function isGzip(bytes: Buffer): boolean {
  return bytes.length > 2 && bytes[0] === 0x1f && bytes[1] === 0x8b
}

/**
 * Inflates synchronously, not in libuv's threads. Threads would gain little, because the main thread has to
 * parse the result, which takes as long as inflating. Besides, many inflations at the same time would need
 * much memory.
 */
function inflate(sent: Buffer, maxBytes: number, mostInflated: number): Inflated {
  const most = Math.min(maxBytes, mostInflated)
  try {
    return { ok: true, bytes: gunzipSync(sent, { maxOutputLength: most, chunkSize: pieceBytes(sent, most) }) }
  } catch (error) {
    const isOver = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
    if (!isOver) return { ok: false, fault: 'bad_gzip' }
    return { ok: false, fault: saidBytes(sent) > maxBytes || most === maxBytes ? 'too_large' : 'too_dense' }
  }
}

const leastPieceBytes = 16 * 1_024

/** Returns the inflated length that a body in gzip states in its last four bytes (RFC 1952, ISIZE). */
function saidBytes(sent: Buffer): number {
  return sent.length < 4 ? 0 : sent.readUInt32LE(sent.length - 4)
}

/**
 * Returns the size of zlib's output buffer. With a buffer of the inflated length, the output comes in one
 * piece. If a client states a false length, this costs no more than a body that really has this length.
 */
function pieceBytes(sent: Buffer, maxBytes: number): number {
  // The buffer has one more byte, because zlib asks for another buffer as soon as its output fills the first.
  return Math.max(leastPieceBytes, Math.min(saidBytes(sent), maxBytes) + 1)
}

/**
 * So much of a body in gzip is inflated to look at its beginning. Even if nothing repeats, this is 200 bytes.
 */
const startSentBytes = 256
const mostStartBytes = 4 * 1_024

/**
 * Returns the beginning of a body in gzip, inflated. This costs a fraction of what it costs to inflate a
 * whole body. If it can't be inflated, or if it repeats itself too much, returns an empty buffer.
 */
export function startOfGzip(sent: Buffer): Buffer {
  try {
    return gunzipSync(sent.subarray(0, startSentBytes), {
      finishFlush: constants.Z_SYNC_FLUSH,
      maxOutputLength: mostStartBytes,
      chunkSize: mostStartBytes,
    })
  } catch {
    return nothing
  }
}

const nothing = Buffer.alloc(0)
