import { hash } from 'node:crypto'
import { standardKeyOf } from '../catalog/secret-rules.ts'

/** What a destination signs with. */
export type Signing = {
  readonly sharedSecret: string
  /** Is to replace `sharedSecret`: signs beside it where there is room for two signatures. */
  readonly nextSharedSecret: string | undefined
  /** Whether the headers of Standard Webhooks are sent beside `X-Signature`. */
  readonly standardWebhooks: boolean
}

/** What is signed. */
export type SignedMessage = { readonly messageId: string; readonly body: Uint8Array }

/** Signs one attempt, made at `nowMs` (epoch): the headers that its requests carry. Name, value, name, value. */
export type Signer = (message: SignedMessage, nowMs: number) => readonly string[]

/** SHA-1 and SHA-256 work on blocks of 64 bytes (FIPS 180-4). */
const blockBytes = 64

/** Standard Webhooks signs `ID.TIMESTAMP.BODY`: an id of at most 100 characters, and seconds of ten digits. */
const prefixBytes = 128

/** Where the body stands in what is hashed: behind the padded key and what is signed before it. */
const bodyStart = blockBytes + prefixBytes

/** What all signatures made here are made of: a body of usual size is copied into it, and nothing is allocated. */
const scratch = Buffer.alloc(16 * 1024)

/**
 * Makes the signatures of one destination.
 *
 * `X-Signature` is the hex HMAC-SHA1 of the exact bytes sent, keyed with the UTF-8 bytes of `sharedSecret`. Standard
 * Webhooks' `webhook-signature` (v1) is the base64 HMAC-SHA256 of id, timestamp and those bytes, keyed as
 * `standardKeyOf` says; with a second secret it has a second signature after a space.
 *
 * Throws when the secrets break the catalog's rules.
 */
export function createSigner({ sharedSecret, nextSharedSecret, standardWebhooks }: Signing): Signer {
  const ownHmac = new Hmac('sha1', Buffer.from(sharedSecret, 'utf8'), 'hex')
  if (!standardWebhooks) {
    return ({ body }) => ['X-Signature', ownHmac.of(lay(body), bodyStart, body.length)]
  }
  const hmac = standardHmac(sharedSecret)
  const nextHmac = nextSharedSecret === undefined ? undefined : standardHmac(nextSharedSecret)
  return ({ messageId, body }, nowMs) => {
    const room = lay(body)
    const ownSignature = ownHmac.of(room, bodyStart, body.length)
    const id = webhookIdOf(messageId)
    const timestamp = secondsOf(nowMs)
    const prefix = `${id}.${timestamp}.`
    const start = bodyStart - prefix.length
    const length = prefix.length + body.length
    room.write(prefix, start, 'latin1')
    let signature = `v1,${hmac.of(room, start, length)}`
    if (nextHmac !== undefined) signature += ` v1,${nextHmac.of(room, start, length)}`
    return [
      'X-Signature',
      ownSignature,
      'webhook-id',
      id,
      'webhook-timestamp',
      timestamp,
      'webhook-signature',
      signature,
    ]
  }
}

/** Puts a body where it can be hashed, with room for what comes before it. */
function lay(body: Uint8Array): Buffer {
  const length = bodyStart + body.length
  const room = length <= scratch.length ? scratch : Buffer.allocUnsafe(length)
  room.set(body, bodyStart)
  return room
}

const isHeaderSafe = /^[A-Za-z0-9_-]{1,100}$/

/**
 * The `webhook-id` of a message: its `messageId` where that has only letters, digits, `_` and `-`, at most 100, and
 * else the base64url SHA-256 of it. So it can stand in a header, and has no dot: what is signed reads in one way only.
 */
export function webhookIdOf(messageId: string): string {
  return isHeaderSafe.test(messageId) ? messageId : hash('sha256', messageId, 'base64url')
}

let lastSecond = -1
let lastSecondText = ''

/** Unix seconds as text, written once a second. */
function secondsOf(nowMs: number): string {
  const second = Math.floor(nowMs / 1000)
  if (second !== lastSecond) {
    lastSecond = second
    lastSecondText = String(second)
  }
  return lastSecondText
}

function standardHmac(secret: string): Hmac {
  const key = standardKeyOf(secret)
  if (key === undefined) throw new Error('a secret was read that its rules refuse')
  return new Hmac('sha256', key, 'base64')
}

const digestBytes = { sha1: 20, sha256: 32 } as const

/**
 * HMAC written out as its two hashes (RFC 2104), with what the key gives prepared once: `createHmac` makes an object
 * of OpenSSL for each body, and a busy process then pays 14 µs for what these do in 3.
 */
class Hmac {
  readonly #algorithm: keyof typeof digestBytes
  readonly #encoding: 'hex' | 'base64'
  readonly #innerPad: Uint8Array
  /** The outer pad, and room for the inner digest. */
  readonly #outer: Buffer

  constructor(algorithm: keyof typeof digestBytes, key: Buffer, encoding: 'hex' | 'base64') {
    this.#algorithm = algorithm
    this.#encoding = encoding
    const block = new Uint8Array(blockBytes)
    // A key that is longer than a block is replaced by its hash.
    block.set(key.length > blockBytes ? hash(algorithm, key, 'buffer') : key)
    this.#innerPad = block.map((byte) => byte ^ 0x36)
    this.#outer = Buffer.alloc(blockBytes + digestBytes[algorithm])
    this.#outer.set(block.map((byte) => byte ^ 0x5c))
  }

  /** Of `length` bytes of `room` from `start` on. The block before them is overwritten. */
  of(room: Buffer, start: number, length: number): string {
    const inner = room.subarray(start - blockBytes, start + length)
    inner.set(this.#innerPad)
    // As a string: a buffer for each digest would cost more than the hash.
    this.#outer.write(hash(this.#algorithm, inner, 'binary'), blockBytes, 'latin1')
    return hash(this.#algorithm, this.#outer, this.#encoding)
  }
}
