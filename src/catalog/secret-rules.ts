import type { Breach } from './hook-rules.ts'

/** What the secrets of a destination may be. Pure. */

/** Begins a secret that is written as Standard Webhooks writes keys: in base64. */
const encodedPrefix = 'whsec_'

/** The rules of any secret. White space at an end is nearly always a file's last line break. */
export function secretBreach(secret: string): Breach | undefined {
  if (/\p{Cc}/u.test(secret)) return { problem: 'has a control character or line break', advice: 'remove it' }
  if (/^\s|\s$/.test(secret)) return { problem: 'begins or ends with white space', advice: 'remove it' }
  if (!secret.isWellFormed()) return { problem: 'is not well-formed Unicode', advice: 'write another secret' }
  return undefined
}

/**
 * The key that Standard Webhooks' signatures are made with: what stands behind `whsec_` in base64 (RFC 4648,
 * section 4, with its padding), or the UTF-8 bytes of a secret that doesn't begin so. `undefined`: it begins
 * so, and what follows is no base64 or nothing.
 */
export function standardKeyOf(secret: string): Buffer | undefined {
  if (!secret.startsWith(encodedPrefix)) return Buffer.from(secret, 'utf8')
  const encoded = secret.slice(encodedPrefix.length)
  const key = Buffer.from(encoded, 'base64')
  // Node skips what isn't base64: only what comes out the same was.
  return key.length > 0 && key.toString('base64') === encoded ? key : undefined
}

/** The rule of a secret that Standard Webhooks' signatures are made with. */
export function standardSecretBreach(secret: string): Breach | undefined {
  if (standardKeyOf(secret) !== undefined) return undefined
  return {
    problem: 'begins with whsec_, and what follows is not base64',
    advice: 'write whsec_ and a key as `openssl rand -base64 32` gives it, or a secret that begins otherwise',
  }
}
