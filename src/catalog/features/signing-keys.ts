import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject } from 'node:crypto'
import { Type } from 'typebox'
import type { FeatureBreach } from './feature-check.ts'
import { unknownPem } from './hook-tls.ts'

// Private keys of Ed25519, with which requests are signed (Standard Webhooks, v1a), and their public keys,
// with which receivers verify them.

/** The prefixes of keys in the format of Standard Webhooks. The rest is base64. */
const privatePrefix = 'whsk_'
const publicPrefix = 'whpk_'
/** The length of a private key, the seed, and of a public key, in bytes (RFC 8032). */
const keyBytes = 32
/** The beginning of a private key in PKCS #8, before the seed (RFC 8410, section 7). */
const pkcs8Head = Buffer.from('302e020100300506032b657004220420', 'hex')
const mostKeys = 3

export const signingKeysSchema = Type.Array(
  Type.String({
    minLength: 1,
    maxLength: 1024,
    description:
      'A private key of Ed25519: whsk_ and base64, as sluice signing-key prints it, or PEM. ${CATALOG_X} stands for the value of a variable.',
    examples: ['${CATALOG_CRM_SIGNING_KEY}'],
  }),
  {
    minItems: 1,
    maxItems: mostKeys,
    description:
      'Private keys of Ed25519. With each of them, webhook-signature has a signature of its own (v1a), in this order. Receivers verify with public keys, which anybody may know and the gateway serves. With several keys, receivers change from one to the next.',
    examples: [['${CATALOG_CRM_SIGNING_KEY}']],
  },
)

/** A public key, as receivers get it. */
export type PublicKey = {
  /** The thumbprint of the key (RFC 7638). */
  readonly id: string
  /** The key in the format of Standard Webhooks. */
  readonly text: string
  /** The 32 bytes of the key in base64url, as a JSON Web Key has them. */
  readonly x: string
}

/** Reads a private key. Returns `undefined` if the text isn't one of Ed25519. */
export function readSigningKey(text: string): KeyObject | undefined {
  try {
    const key = text.startsWith(privatePrefix)
      ? createPrivateKey({ key: pkcs8Of(text.slice(privatePrefix.length)), format: 'der', type: 'pkcs8' })
      : createPrivateKey(text)
    return key.asymmetricKeyType === 'ed25519' ? key : undefined
  } catch {
    return undefined
  }
}

/** Checks a private key in the catalog. */
export function signingKeyBreach(text: string): FeatureBreach | undefined {
  if (text === unknownPem) return undefined
  const key = readSigningKey(text)
  if (key === undefined)
    return {
      problem: 'is not a private key of Ed25519',
      advice: 'write what `sluice signing-key` or `openssl genpkey -algorithm ed25519` gives',
    }
  if (!text.startsWith(privatePrefix)) return undefined
  // Some programs write the public key after the seed. If it were another one, receivers would verify with
  // it.
  const written = Buffer.from(text.slice(privatePrefix.length), 'base64').subarray(keyBytes)
  if (written.length > 0 && written.toString('base64url') !== publicKeyOf(key).x)
    return { problem: 'has a public key that is not its own', advice: 'write the key anew' }
  return undefined
}

/** Returns the public key of a private key. */
function publicKeyOf(key: KeyObject): PublicKey {
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  const id = hash('sha256', JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }), 'base64url')
  return { id, text: publicPrefix + Buffer.from(x, 'base64url').toString('base64'), x }
}

/** Returns the public keys of private keys that have no fault. */
export function publicKeysOf(texts: readonly string[] = []): readonly PublicKey[] {
  return texts.flatMap((text) => {
    const key = readSigningKey(text)
    return key === undefined ? [] : [publicKeyOf(key)]
  })
}

/** Makes a private key. The text has the public key after the seed, as other programs write it. */
export function newSigningKey(): string {
  const { privateKey } = generateKeyPairSync('ed25519')
  const { d = '', x = '' } = privateKey.export({ format: 'jwk' })
  const bytes = Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')])
  return privatePrefix + bytes.toString('base64')
}

/** Returns public keys as a set of JSON Web Keys (RFC 7517, RFC 8037). */
export function keySetOf(keys: readonly PublicKey[]) {
  return {
    keys: keys.map(({ id, text, x }) => ({
      kty: 'OKP',
      crv: 'Ed25519',
      x,
      kid: id,
      use: 'sig',
      alg: 'EdDSA',
      whpk: text,
    })),
  }
}

function pkcs8Of(encoded: string): Buffer {
  const bytes = Buffer.from(encoded, 'base64')
  // Node skips characters that aren't base64. So the text is base64 only if the encoded bytes are the same.
  const isWhole = bytes.length === keyBytes || bytes.length === 2 * keyBytes
  if (!isWhole || bytes.toString('base64') !== encoded) throw new Error('it is not base64 of a key')
  return Buffer.concat([pkcs8Head, bytes.subarray(0, keyBytes)])
}
