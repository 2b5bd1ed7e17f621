import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * The rights of a token. `read` looks, `operate` also orders, stops and resumes replays, `admin` also sees
 * the audit trail.
 */
export const rights = ['read', 'operate', 'admin'] as const
export type AdminRight = (typeof rights)[number]

export type Token = {
  /** The name of the holder, for the audit trail. */
  readonly name: string
  readonly right: AdminRight
  /** SHA-256 of the token. A token has 256 random bits, so no slower hash is needed. */
  readonly digest: Buffer
}

export type TokensRead =
  | { readonly ok: true; readonly tokens: readonly Token[] }
  | { readonly ok: false; readonly problem: string }

const line = /^([A-Za-z0-9][A-Za-z0-9._@-]{0,99}) (read|operate|admin) sha256:([0-9a-f]{64})$/

/**
 * Reads a file of tokens. Each line has a name, a right and a hash; lines that begin with # are comments. A
 * file without a token lets nobody in.
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

/** Creates a token, which is stored nowhere else, and its line for the file. */
export function createToken(
  name: string,
  right: AdminRight,
): { readonly token: string; readonly line: string } {
  const token = `sluice_${randomBytes(32).toString('base64url')}`
  return { token, line: `${name} ${right} sha256:${digestOf(token).toString('hex')}` }
}

/** Finds the entry of a token. Takes the same time for every token that isn't in the list. */
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
