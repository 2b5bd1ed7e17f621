import { parseTimestamp } from '../message/timestamp.ts'
import type { Breach } from './hook-rules.ts'
import { isString } from './plain-data.ts'

// The rules for a destination's secrets.

/** The prefix of a secret in the format of Standard Webhooks. After the prefix comes the key in base64. */
const encodedPrefix = 'whsec_'

/**
 * Checks the rules for all secrets. White space at the end of a secret is refused, because it is nearly
 * always the last line break of a file.
 */
export function secretBreach(secret: string): Breach | undefined {
  if (/\p{Cc}/u.test(secret)) return { problem: 'has a control character or line break', advice: 'remove it' }
  if (/^\s|\s$/.test(secret)) return { problem: 'begins or ends with white space', advice: 'remove it' }
  if (!secret.isWellFormed()) return { problem: 'is not well-formed Unicode', advice: 'write another secret' }
  return undefined
}

/**
 * Returns the key for Standard Webhooks' signatures. If a secret begins with `whsec_`, the rest of the secret
 * is the key in base64 (RFC 4648, section 4, with padding). Otherwise the key is the UTF-8 bytes of the
 * secret. Returns `undefined` if the text after the prefix is empty or isn't base64.
 */
export function standardKeyOf(secret: string): Buffer | undefined {
  if (!secret.startsWith(encodedPrefix)) return Buffer.from(secret, 'utf8')
  const encoded = secret.slice(encodedPrefix.length)
  const key = Buffer.from(encoded, 'base64')
  // Node skips characters that aren't base64. So the text is base64 only if the encoded key is the same text.
  return key.length > 0 && key.toString('base64') === encoded ? key : undefined
}

/** Checks a secret that is used for Standard Webhooks' signatures. */
export function standardSecretBreach(secret: string): Breach | undefined {
  if (standardKeyOf(secret) !== undefined) return undefined
  return {
    problem: 'begins with whsec_, and what follows is not base64',
    advice: 'write whsec_ and a key as `openssl rand -base64 32` gives it, or a secret that begins otherwise',
  }
}

/**
 * Checks the time at which a destination's `sharedSecret` ends. The time must be valid, and there must be
 * another secret for signatures from this time on.
 */
export function secretEndBreach({
  sharedSecret,
  nextSharedSecret,
  sharedSecretEndsAt,
}: Readonly<Record<string, unknown>>): Breach | undefined {
  if (!isString(sharedSecretEndsAt)) return undefined
  if (parseTimestamp(sharedSecretEndsAt) === undefined) {
    return {
      problem: 'is a time that does not exist',
      advice: 'write ISO 8601, such as 2026-01-31T12:00:00Z',
    }
  }
  if (sharedSecret === undefined) {
    return { problem: 'is set without a sharedSecret', advice: 'remove it' }
  }
  if (nextSharedSecret !== undefined) return undefined
  return {
    problem: 'leaves nothing to sign with after it',
    advice: 'add nextSharedSecret: ${CATALOG_NAME}, or remove it',
  }
}
