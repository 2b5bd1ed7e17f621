import { hash } from 'node:crypto'
import { standardKeyOf } from '../catalog/secret-rules.ts'
import { blockBytes, Hmac } from './hmac.ts'

/** The settings with which the requests to a destination are signed. */
export type Signing = {
  readonly sharedSecret: string
  /**
   * The secret that will replace `sharedSecret`. Until then, the header `webhook-signature` has two
   * signatures, one made with each secret.
   */
  readonly nextSharedSecret: string | undefined
  /**
   * The time from which requests are signed with `nextSharedSecret` only, in epoch milliseconds. `undefined`:
   * `sharedSecret` stays in use.
   */
  readonly sharedSecretEndsAtMs?: number | undefined
  /** True if the headers of Standard Webhooks are sent in addition to `X-Signature`. */
  readonly standardWebhooks: boolean
}

export type SignedMessage = { readonly messageId: string; readonly body: Uint8Array }

/**
 * Signs one attempt, made at `nowMs` (epoch). Returns the headers for its requests: name, value, name, value.
 */
export type Signer = (message: SignedMessage, nowMs: number) => readonly string[]

/**
 * Room for the text before the body, in bytes. Standard Webhooks signs `ID.TIMESTAMP.BODY`. The id has at
 * most 100 characters, and the timestamp has ten digits.
 */
const prefixBytes = 128

/** Offset of the body in the hashed buffer. The padded key and the signed prefix come before the body. */
const bodyStart = blockBytes + prefixBytes

/**
 * Buffer for all signatures. A body is copied into this buffer, so that no new buffer has to be allocated. It
 * grows when a larger body comes, for example a batch, up to `mostScratchBytes`.
 */
let scratch = Buffer.alloc(16 * 1024)
const mostScratchBytes = 1024 ** 2

/**
 * Creates the signer of one destination.
 *
 * `X-Signature` is the hex HMAC-SHA1 of the exact bytes sent, keyed with the UTF-8 bytes of `sharedSecret`.
 * Standard Webhooks' `webhook-signature` (v1) is the base64 HMAC-SHA256 of the id, the timestamp and the
 * bytes sent. Its key is made from the secret by `standardKeyOf`. If there is a second secret,
 * `webhook-signature` has a second signature after a space. From `sharedSecretEndsAtMs` on, the signatures in
 * both headers are made with the second secret only.
 *
 * Throws if the secrets break the catalog's rules.
 */
export function createSigner(signing: Signing): Signer {
  const { nextSharedSecret, sharedSecretEndsAtMs } = signing
  const before = signerOf(signing)
  if (nextSharedSecret === undefined || sharedSecretEndsAtMs === undefined) return before
  const after = signerOf({ ...signing, sharedSecret: nextSharedSecret, nextSharedSecret: undefined })
  return (message, nowMs) => (nowMs < sharedSecretEndsAtMs ? before : after)(message, nowMs)
}

/** Creates a signer that uses the same secrets at all times. */
function signerOf({ sharedSecret, nextSharedSecret, standardWebhooks }: Signing): Signer {
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

/** Copies a body into a buffer for hashing, and leaves room before the body for the key and the prefix. */
function lay(body: Uint8Array): Buffer {
  const length = bodyStart + body.length
  if (length > scratch.length && length <= mostScratchBytes)
    scratch = Buffer.alloc(2 ** Math.ceil(Math.log2(length)))
  const room = length <= scratch.length ? scratch : Buffer.allocUnsafe(length)
  room.set(body, bodyStart)
  return room
}

const isHeaderSafe = /^[A-Za-z0-9_-]{1,100}$/

/**
 * Returns the `webhook-id` of a message. If the `messageId` consists of at most 100 letters, digits, `_` and
 * `-`, the `webhook-id` is the `messageId`. Otherwise the `webhook-id` is the base64url SHA-256 of the
 * `messageId`. So the `webhook-id` is safe in a header. It never contains a dot, so the signed text is
 * unambiguous.
 */
export function webhookIdOf(messageId: string): string {
  return isHeaderSafe.test(messageId) ? messageId : hash('sha256', messageId, 'base64url')
}

let lastSecond = -1
let lastSecondText = ''

/** Returns Unix seconds as text. The text is made only once per second. */
export function secondsOf(nowMs: number): string {
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
