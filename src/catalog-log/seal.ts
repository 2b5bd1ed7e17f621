import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { CatalogKeys } from './keys.ts'

/**
 * What a sealed text belongs to. A text that was sealed for one place can't be opened at another, so whoever
 * may write to Kafka, or edit a URL, can't carry a secret to another endpoint.
 */
export type SealedPlace = {
  /** The id of the installation. */
  readonly installation: string
  /** The key of the object. */
  readonly object: string
  /** The name of the field. */
  readonly field: string
  /** The scheme, host and port to which the text is sent. Empty if it is sent nowhere. */
  readonly origin: string
}

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16
const pattern = /^sealed:1:([A-Za-z0-9_-]{1,32}):(\d{1,16}):([A-Za-z0-9_-]+)$/

/** Reports that a sealed text can't be opened here. */
export class SealError extends Error {
  override readonly name = 'SealError'
}

/** Seals a text with AES-256-GCM. `atMs`: when the text was set, in epoch milliseconds. */
export function seal(
  text: string,
  place: SealedPlace,
  { keys, atMs }: { keys: CatalogKeys; atMs: number },
): string {
  const { id, seal: key } = keys.current
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(additional(place, atMs))
  const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return `sealed:1:${id}:${atMs}:${sealed.toString('base64url')}`
}

/** Opens a sealed text. Throws if the key is missing, or if the text was sealed for another place. */
export function unseal(sealed: string, place: SealedPlace, keys: CatalogKeys): string {
  const match = pattern.exec(sealed)
  if (match === null) throw new SealError('is not sealed in a way that this version knows')
  const [, keyId = '', at = '', encoded = ''] = match
  const key = keys.byId.get(keyId)
  if (key === undefined) throw new SealError(`is sealed with the key ${keyId}, which catalog.keysFile lacks`)
  const bytes = Buffer.from(encoded, 'base64url')
  const tagAt = bytes.length - tagBytes
  try {
    const decipher = createDecipheriv(algorithm, key.seal, bytes.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    })
    decipher.setAAD(additional(place, Number(at)))
    decipher.setAuthTag(bytes.subarray(tagAt))
    return decipher.update(bytes.subarray(nonceBytes, tagAt), undefined, 'utf8') + decipher.final('utf8')
  } catch (cause) {
    throw new SealError('was sealed for another place, or was changed', { cause })
  }
}

/** Returns when a sealed text was set, in epoch milliseconds. `undefined` if the text isn't sealed. */
export function sealedAtMs(text: string): number | undefined {
  const at = pattern.exec(text)?.[2]
  return at === undefined ? undefined : Number(at)
}

/** Returns the id of the key with which a text is sealed. `undefined` if the text isn't sealed. */
export function sealedWith(text: string): string | undefined {
  return pattern.exec(text)?.[1]
}

function additional({ installation, object, field, origin }: SealedPlace, atMs: number): Buffer {
  return Buffer.from(JSON.stringify([installation, object, field, origin, atMs]))
}
