import { type AdminAnswer, done, missing, problem } from '../admin/problem.ts'
import { covers, isScoped, narrowed, readScope, scopeData, sees, type TokenScope } from '../admin/scope.ts'
import type { AdminCalls, AdminRequest } from '../admin/server.ts'
import type { TokenBook } from '../admin/token-book.ts'
import {
  type AdminRight,
  type KeptToken,
  mayDo,
  rights,
  seesContentByDefault,
  type Token,
} from '../admin/tokens.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config/schema.ts'
import { parseTimestamp } from '../message/timestamp.ts'
import { type OpenedDesk, refusalText } from './operations/catalog-desk.ts'
import {
  defaultLastsMs,
  makeToken,
  removeToken,
  type TokenOrder,
  untilRead,
} from './operations/token-desk.ts'
import { type AtDesk, deskCalls } from './catalog-calls.ts'
import type { Log } from './replay-calls.ts'
import type { CatalogTopic } from './catalog/followed-topic.ts'

export type TokenCallsOptions = {
  readonly book: TokenBook
  /** `undefined` if the catalog is in a file. */
  readonly desk: Pick<OpenedDesk, 'change'> | undefined
  readonly topic: Pick<CatalogTopic, 'revision'> | undefined
  readonly catalog: () => Catalog
  readonly config: Config
  readonly log: Log
}

type Calls = Pick<AdminCalls, 'list_tokens' | 'create_token' | 'remove_token'>

/** The most tokens in the topic, and the most that those with one scope may make. */
const mostTokens = { inTopic: 20_000, ofScope: 200 } as const

/** Creates the handlers of the calls that make, list and revoke tokens. */
export function tokenCalls(options: TokenCallsOptions): Calls {
  const calls = new TokenCalls(options)
  return {
    list_tokens: async (request) => done(calls.list(request)),
    create_token: (request) => calls.create(request),
    remove_token: (request) => calls.remove(request),
  }
}

class TokenCalls {
  readonly #options: TokenCallsOptions
  readonly #atDesk: AtDesk<Pick<OpenedDesk, 'change'>>

  constructor(options: TokenCallsOptions) {
    const { desk, config, log } = options
    this.#options = options
    const atDesk = deskCalls(desk, config, log, unanswered)
    this.#atDesk = (request, work) => atDesk(request, work, { deed: 'use-tokens' })
  }

  list({ token: { scope } }: AdminRequest): object {
    const { book } = this.#options
    const edited = book.ofFile.map((token) => ({ ...madeData(token), ...this.#useOf(token), origin: 'file' }))
    const ofTopic = this.#seenBy(scope).map((token) => ({
      ...madeData(token),
      ...this.#useOf(token),
      origin: 'topic',
    }))
    const tokens = [...(isScoped(scope) ? [] : edited), ...ofTopic]
    return {
      tokens: tokens.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
      usesKnownSince: new Date(book.usesKnownSinceMs).toISOString(),
    }
  }

  create({ body, token, isInForce }: AdminRequest): Promise<AdminAnswer> {
    return this.#atDesk({ isInForce }, async (desk) => {
      const order = this.#orderOf(body, token)
      if ('status' in order) return order
      const { token: text, kept, answer } = await makeToken(desk, order)
      if (answer.ok) {
        await untilRead(this.#options.topic, answer.revision)
        return done({ token: text, ...madeData(kept) }, 201)
      }
      return answer.kind === 'outdated' ? problem('conflict', isTaken(order.name)) : refusedChange(answer)
    })
  }

  remove({ params, token: { name: by, scope }, isInForce }: AdminRequest): Promise<AdminAnswer> {
    const { token: name = '' } = params
    return this.#atDesk({ isInForce }, async (desk) => {
      const isOfFile = this.#options.book.ofFile.some((one) => one.name === name)
      if (isOfFile && !isScoped(scope)) return problem('conflict', ofFile(name))
      const token = this.#seenBy(scope).find((one) => one.name === name)
      if (token === undefined) return missing('token', name)
      const answer = await removeToken(desk, token, by)
      if (answer.ok) {
        await untilRead(this.#options.topic, answer.revision)
        return done({ name, what: 'removed' })
      }
      return answer.kind === 'missing' ? missing('token', name) : refusedChange(answer)
    })
  }

  /** Returns what is asked for, or why it can't be had. */
  #orderOf(body: unknown, maker: AdminRequest['token']): TokenOrder | AdminAnswer {
    const given: {
      name?: unknown
      right?: unknown
      content?: unknown
      scope?: unknown
      expiresAt?: unknown
    } = Object(body)
    const name = String(given.name)
    const right = rights.find((known): known is AdminRight => known === given.right)
    const wanted = readScope(given.scope)
    if (right === undefined || wanted === undefined)
      return problem('bad_request', 'right and scope are those of /openapi.json.')
    const endsAtMs = endOf(given.expiresAt, maker.endsAtMs)
    if (typeof endsAtMs === 'string') return problem('bad_request', endsAtMs)
    const scope = narrowed(maker.scope, wanted)
    const isLonger = maker.endsAtMs !== undefined && (endsAtMs ?? Infinity) > maker.endsAtMs
    const seesContent = given.content ?? (maker.seesContent && seesContentByDefault(right))
    const seesMore = seesContent === true && !maker.seesContent
    if (scope === undefined || !mayDo(maker, right) || isLonger || seesMore)
      return problem('not_allowed', moreThanOwn)
    const unseen = [...(scope.destinations ?? [])].find((id) => !this.#isThere(maker.scope, id))
    if (unseen !== undefined) return missing('destination', unseen)
    if (isScoped(maker.scope) && !name.startsWith(`${maker.name}.`))
      return problem('not_allowed', `The names of tokens that this token makes begin with "${maker.name}.".`)
    if (this.#options.book.ofFile.some((one) => one.name === name)) return problem('conflict', isTaken(name))
    const isFull =
      this.#options.book.ofTopic.length >= mostTokens.inTopic ||
      (isScoped(maker.scope) && this.#seenBy(maker.scope).length >= mostTokens.ofScope)
    if (isFull) return problem('conflict', 'There are too many tokens: remove those that are not needed.')
    const family = isScoped(maker.scope) ? maker.family : name
    return { name, right, seesContent: seesContent === true, scope, endsAtMs, family, by: maker.name }
  }

  #isThere(scope: TokenScope, destinationId: string): boolean {
    const catalog = this.#options.catalog()
    return catalog.destinations.has(destinationId) && sees(scope, catalog, destinationId)
  }

  /** The tokens of the topic that may not see more than somebody with this scope. */
  #seenBy(scope: TokenScope): readonly KeptToken[] {
    return this.#options.book.ofTopic.filter((token) => covers(scope, token.scope))
  }

  #useOf(token: Token): { readonly hasEnded: boolean; readonly lastUsedAt: string | null } {
    const { book } = this.#options
    return { hasEnded: book.hasEnded(token), lastUsedAt: isoOrNull(book.lastUsedMs(token)) }
  }
}

function madeData(token: Token & Partial<Pick<KeptToken, 'madeBy' | 'madeAtMs'>>) {
  const { name, right, seesContent, scope, endsAtMs, madeBy, madeAtMs } = token
  return {
    name,
    right,
    content: seesContent,
    scope: scopeData(scope),
    expiresAt: isoOrNull(endsAtMs),
    createdBy: madeBy ?? null,
    createdAt: isoOrNull(madeAtMs),
  }
}

function isoOrNull(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}

/**
 * Returns the end of a new token, in epoch milliseconds, or a text that says what is wrong. `undefined`: it
 * has none.
 */
function endOf(given: unknown, makerEndsAtMs: number | undefined): number | undefined | string {
  if (given === null) return undefined
  const nowMs = Date.now()
  if (typeof given !== 'string') return Math.min(nowMs + defaultLastsMs, makerEndsAtMs ?? Infinity)
  const endsAtMs = parseTimestamp(given)
  if (endsAtMs === undefined) return 'expiresAt is a time, ISO 8601, such as 2026-10-27T09:30:00Z, or null.'
  return endsAtMs > nowMs ? endsAtMs : 'expiresAt is over.'
}

function refusedChange(answer: Parameters<typeof refusalText>[0]): AdminAnswer {
  return answer.kind === 'busy' || answer.kind === 'full'
    ? problem('unavailable', refusalText(answer))
    : problem('conflict', 'The topic of the catalog can not be changed now: its log lines say why.')
}

const moreThanOwn =
  'A token makes only tokens that may not do more than itself: not by their right, not by their scope, not by what they see, and not for longer.'
const unanswered =
  'Kafka does not answer, or not in time: the token may have been made or revoked. List the tokens; if there is one whose text you do not have, revoke it.'

function isTaken(name: string): string {
  return `There is a token ${JSON.stringify(name)} already: choose another name.`
}

function ofFile(name: string): string {
  return `The token ${JSON.stringify(name)} is in the file of admin.tokensFile: remove its line there.`
}
