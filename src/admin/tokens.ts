import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { everything, readScope, type ScopeData, scopeData, type TokenScope } from './scope.ts'

/**
 * The rights of a token. Each right includes the rights that come before it in the list. `read`: read
 * everything except the audit trail. `operate`: create, stop and resume replays, and resume destinations.
 * `admin`: read the audit trail, and change the catalog and the tokens.
 */
export const rights = ['read', 'operate', 'admin'] as const
export type AdminRight = (typeof rights)[number]

/**
 * What a link may let its holder do. `see`: destinations, their health, the delivery log and replays.
 * `answers`: what endpoints have answered, in the delivery log. `replay`: send messages again, and try now
 * what waits. `test`: send test messages. `edit_url`: change the URLs of destinations, and nothing else of
 * them. `rotate`: replace their secrets.
 */
export const grants = ['see', 'answers', 'replay', 'test', 'edit_url', 'rotate'] as const
export type Grant = (typeof grants)[number]

export type Token = {
  /** The name of the person or program that has the token, for the audit trail. */
  readonly name: string
  readonly right: AdminRight
  /**
   * Whether the token sees what messages contain, and what endpoints have answered. This is personal data, so
   * it is said apart from the right.
   */
  readonly seesContent: boolean
  /** The SHA-256 hash of the token. A token has 256 random bits, so a slower hash isn't necessary. */
  readonly digest: Buffer
  readonly scope: TokenScope
  /** When the token ends, in epoch milliseconds. `undefined`: never. */
  readonly endsAtMs: number | undefined
  /**
   * The name of the first token of a family. A token with a scope and all that were made with it share their
   * limits.
   */
  readonly family: string
  /** Of a session that a link has begun: what it may do, in place of the right. */
  readonly grants?: ReadonlySet<Grant>
}

/** A token of the catalog's topic. */
export type KeptToken = Token & { readonly madeBy: string; readonly madeAtMs: number }

export type TokensRead =
  | { readonly ok: true; readonly tokens: readonly Token[] }
  | { readonly ok: false; readonly problem: string }

export const namePattern = '^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$'
const line =
  /^([A-Za-z0-9][A-Za-z0-9._@-]{0,99}) (read|operate|admin) sha256:([0-9a-f]{64})(?: (content|no-content))?$/

/** Whether a token sees what endpoints have answered. A link may see this without what messages contain. */
export function seesAnswers({ seesContent, grants: given }: Pick<Token, 'seesContent' | 'grants'>): boolean {
  return seesContent || given?.has('answers') === true
}

/** Whether one token is shown exactly what the other is, by whatever route. */
export function seesTheSame(
  one: Pick<Token, 'seesContent' | 'grants' | 'scope'>,
  other: Pick<Token, 'seesContent' | 'grants' | 'scope'>,
): boolean {
  if (one.seesContent !== other.seesContent || seesAnswers(one) !== seesAnswers(other)) return false
  // Mostly, it is the same object.
  return one.scope === other.scope || isSameScope(one.scope, other.scope)
}

function isSameScope(one: TokenScope, other: TokenScope): boolean {
  return JSON.stringify(scopeData(one)) === JSON.stringify(scopeData(other))
}

/** Whether tokens with this right see content, if nobody has said it. */
export function seesContentByDefault(right: AdminRight): boolean {
  return right !== 'read'
}

/**
 * Parses the text of a file of tokens. Each line has a name, a right and a hash, and may end with `content`
 * or `no-content`. Lines that begin with # are comments. If the file has no tokens, nobody may use the API.
 * These tokens have no end, and are for the whole installation.
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
    const [, name = '', , hex = '', content] = match
    const digest = Buffer.from(hex, 'hex')
    const seesContent = content === undefined ? seesContentByDefault(right) : content === 'content'
    const whole = { scope: everything, endsAtMs: undefined, family: name }
    tokens.push({ name, right, seesContent, digest, ...whole })
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
  seesContent = seesContentByDefault(right),
): { readonly token: string; readonly line: string } {
  const { token } = newSecret()
  return { token, line: tokenLine(token, name, right, seesContent) }
}

/** Makes the text of a token, and its hash, which alone is stored. */
export function newSecret(): { readonly token: string; readonly digest: Buffer } {
  const token = `sluice_${randomBytes(32).toString('base64url')}`
  return { token, digest: digestOf(token) }
}

/** Returns the line that stands for a token in the file of tokens. */
export function tokenLine(
  token: string,
  name: string,
  right: AdminRight,
  seesContent = seesContentByDefault(right),
): string {
  const said = contentText({ right, seesContent })
  return `${name} ${right} sha256:${digestOf(token).toString('hex')}${said === '' ? '' : ` ${said}`}`
}

/** Says whether a token sees content, if it is not as usual with its right. */
export function contentText({ right, seesContent }: Pick<Token, 'right' | 'seesContent'>): string {
  if (seesContent === seesContentByDefault(right)) return ''
  return seesContent ? 'content' : 'no-content'
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

export function mayDo({ right }: Pick<Token, 'right'>, wanted: AdminRight): boolean {
  return rights.indexOf(right) >= rights.indexOf(wanted)
}

/** Names those tokens that share their limits: of one label, of one family, or the token itself. */
export function shareOf({ scope: { label }, family }: Pick<Token, 'scope' | 'family'>): string {
  return label === undefined ? `of ${family}` : `label ${label.key}=${label.value}`
}

export function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** A token as the topic of the catalog has it. Its names never change. */
type StoredToken = {
  readonly id: string
  readonly right: AdminRight
  /** Absent: as usual with the right. */
  readonly content?: boolean
  readonly sha256: string
  readonly scope: ScopeData
  readonly endsAt?: string
  readonly madeBy: string
  readonly madeAt: string
  readonly family: string
}

export function storedToken(token: KeptToken): StoredToken {
  return {
    id: token.name,
    right: token.right,
    ...(contentText(token) !== '' && { content: token.seesContent }),
    sha256: token.digest.toString('hex'),
    scope: scopeData(token.scope),
    ...(token.endsAtMs !== undefined && { endsAt: new Date(token.endsAtMs).toISOString() }),
    madeBy: token.madeBy,
    madeAt: new Date(token.madeAtMs).toISOString(),
    family: token.family,
  }
}

const storedFields = new Set([
  'id',
  'right',
  'content',
  'sha256',
  'scope',
  'endsAt',
  'madeBy',
  'madeAt',
  'family',
])

/**
 * Reads a token of the topic. Returns `undefined` if this version doesn't know all of it, because what it
 * doesn't know may say that the token may do less.
 */
export function readStoredToken(stored: Readonly<Record<string, unknown>>): KeptToken | undefined {
  const text = (name: string): string => (typeof stored[name] === 'string' ? stored[name] : '')
  const right = rights.find((known) => known === stored['right'])
  const scope = readScope(stored['scope'])
  const isKnown = Object.keys(stored).every((name) => storedFields.has(name))
  const endsAtMs = stored['endsAt'] === undefined ? undefined : Date.parse(text('endsAt'))
  const { content } = stored
  if (content !== undefined && typeof content !== 'boolean') return undefined
  if (right === undefined || scope === undefined || !isKnown || Number.isNaN(endsAtMs)) return undefined
  if (!/^[0-9a-f]{64}$/.test(text('sha256')) || text('id') === '') return undefined
  return {
    name: text('id'),
    right,
    seesContent: content ?? seesContentByDefault(right),
    digest: Buffer.from(text('sha256'), 'hex'),
    scope,
    endsAtMs,
    madeBy: text('madeBy'),
    madeAtMs: Date.parse(text('madeAt')),
    family: text('family'),
  }
}
