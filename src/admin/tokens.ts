import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * The rights of a token. Each right includes the rights that come before it in the list. `read`: read
 * everything except the audit trail. `operate`: create, stop and resume replays, and resume destinations.
 * `admin`: read the audit trail.
 */
export const rights = ['read', 'operate', 'admin'] as const
export type AdminRight = (typeof rights)[number]

export type Token = {
  /** The name of the person or program that has the token, for the audit trail. */
  readonly name: string
  readonly right: AdminRight
  /** The SHA-256 hash of the token. A token has 256 random bits, so a slower hash isn't necessary. */
  readonly digest: Buffer
}

export type TokensRead =
  | { readonly ok: true; readonly tokens: readonly Token[] }
  | { readonly ok: false; readonly problem: string }

const line = /^([A-Za-z0-9][A-Za-z0-9._@-]{0,99}) (read|operate|admin) sha256:([0-9a-f]{64})$/

/**
 * Parses the text of a file of tokens. Each line has a name, a right and a hash. Lines that begin with # are
 * comments. If the file has no tokens, nobody may use the API.
 */
export function readTokens(text: string): TokensRead {
  const tokens: Token[] = []
  for (const [index, raw] of text.split('\n').entries()) {
    const given = raw.trim()
    if (given === '' || given.startsWith('#')) continue
    const match = line.exec(given)
    const right = rights.find((known) => known === match?.[2])
    if (match === null || right === undefined)
      return {
        ok: false,
        problem: `line ${index + 1} is no token: \`sluice admin token create\` writes such lines`,
      }
    tokens.push({ name: match[1] ?? '', right, digest: Buffer.from(match[3] ?? '', 'hex') })
  }
  return { ok: true, tokens }
}

/**
 * Creates a token, and the line that stands for it in the file of tokens. The token itself isn't stored
 * anywhere.
 */
export function createToken(
  name: string,
  right: AdminRight,
): { readonly token: string; readonly line: string } {
  const token = `sluice_${randomBytes(32).toString('base64url')}`
  return { token, line: tokenLine(token, name, right) }
}

/** Returns the line that stands for a token in the file of tokens. */
export function tokenLine(token: string, name: string, right: AdminRight): string {
  return `${name} ${right} sha256:${digestOf(token).toString('hex')}`
}

/**
 * Finds the entry for the token `given`. The search takes the same time for every `given`, so that the time
 * reveals nothing about the tokens in the list.
 */
export function findToken(tokens: readonly Token[], given: string): Token | undefined {
  const digest = digestOf(given)
  let found: Token | undefined
  for (const token of tokens) if (timingSafeEqual(token.digest, digest)) found = token
  return found
}

export function mayDo({ right }: Token, wanted: AdminRight): boolean {
  return rights.indexOf(right) >= rights.indexOf(wanted)
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
