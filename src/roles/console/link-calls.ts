import { rightOf } from '../../admin/grants.ts'
import { type Link, type LinkBook, newLink, storedLink } from '../../admin/links.ts'
import { type AdminAnswer, done, missing, problem } from '../../admin/problem.ts'
import { covers, isScoped, scopeText } from '../../admin/scope.ts'
import type { AdminCalls, AdminRequest } from '../../admin/server.ts'
import { type Grant, grants, mayDo, seesAnswers } from '../../admin/tokens.ts'
import { readSelector } from '../../catalog/labels.ts'
import { parseTimestamp } from '../../message/timestamp.ts'
import { atStore, type SessionStore } from './session-store.ts'

export type LinkCallsOptions = {
  readonly links: LinkBook
  /** `undefined` if the catalog is in a file: a link has to outlive a restart. */
  readonly store: SessionStore | undefined
  /** Where the console is for browsers: a URL, or a path without the host. */
  readonly home: string
  readonly log: { readonly warn: (fields: object, message: string) => void }
}

type Calls = Pick<AdminCalls, 'list_links' | 'create_link' | 'remove_link'>

const dayMs = 24 * 3_600_000
const lastsMs = { unlessSaid: 7 * dayMs, most: 90 * dayMs } as const
/** The most links, and the most with one label. */
const mostLinks = { ofAll: 10_000, ofLabel: 200 } as const
const mostSwept = 100

/** Creates the handlers of the calls that make, list and revoke links of customers. */
export function linkCalls(options: LinkCallsOptions): Calls {
  const calls = new LinkCalls(options)
  return {
    list_links: async (request) => done({ links: calls.seenBy(request).map(linkData) }),
    create_link: (request) => calls.create(request),
    remove_link: (request) => calls.remove(request),
  }
}

class LinkCalls {
  readonly #options: LinkCallsOptions

  constructor(options: LinkCallsOptions) {
    this.#options = options
  }

  /** The links that have not ended, and show no more than the token of the request sees. The newest first. */
  seenBy({ token: { scope } }: Pick<AdminRequest, 'token'>): readonly Link[] {
    const nowMs = Date.now()
    return this.#options.links.all
      .filter((link) => link.endsAtMs > nowMs && covers(scope, link.scope))
      .toSorted((one, other) => other.madeAtMs - one.madeAtMs)
  }

  create(request: AdminRequest): Promise<AdminAnswer> {
    const { token } = request
    return this.#atStore(request, async (store) => {
      const order = this.#orderOf(request)
      if ('status' in order) return order
      const { secret, link } = newLink({ ...order, madeBy: token.name })
      const nowMs = Date.now()
      const ended = this.#options.links.all.filter(({ endsAtMs }) => endsAtMs <= nowMs)
      await store.change({
        put: storedLink(link),
        sweep: ended.slice(0, mostSwept).map(({ id }) => id),
        by: token.name,
        deed: 'links_changed',
        note: `+${linkText(link)}`,
      })
      return done({ link: `${this.#options.home}#link=${secret}`, ...linkData(link) }, 201)
    })
  }

  remove(request: AdminRequest): Promise<AdminAnswer> {
    const { params, token } = request
    const { link: id = '' } = params
    return this.#atStore(request, async (store) => {
      const link = this.seenBy(request).find((one) => one.id === id)
      if (link === undefined) return missing('link', id)
      const isRemoved = await store.change({
        use: [id],
        by: token.name,
        deed: 'links_changed',
        note: `-${linkText(link)}`,
      })
      return isRemoved ? done({ id, what: 'removed' }) : missing('link', id)
    })
  }

  /** Returns what is asked for, or why it can't be had. */
  #orderOf({ body, token }: AdminRequest): Omit<Link, 'id' | 'hash' | 'madeAtMs' | 'madeBy'> | AdminAnswer {
    const given: { name?: unknown; label?: unknown; rights?: unknown; expiresAt?: unknown } = Object(body)
    const label = readSelector(String(given.label))
    const asked: readonly unknown[] = Array.isArray(given.rights) ? given.rights : []
    if (label === undefined) return problem('bad_request', 'label is a label and its value: tenant=acme.')
    const wanted = grants.filter((grant) => asked.includes(grant))
    const scope = { label }
    const isMore =
      wanted.some((grant) => !mayDo(token, rightOf[grant])) ||
      (wanted.includes('answers') && !seesAnswers(token))
    if (isMore || !covers(token.scope, scope)) return problem('not_allowed', moreThanOwn)
    const endsAtMs = endOf(given.expiresAt, token.endsAtMs)
    if (typeof endsAtMs === 'string') return problem('bad_request', endsAtMs)
    const { all } = this.#options.links
    const alike = all.filter((link) => covers(scope, link.scope))
    if (all.length >= mostLinks.ofAll || alike.length >= mostLinks.ofLabel)
      return problem('conflict', 'There are too many links: revoke those that are not needed.')
    // Whoever may do something also sees what it is about.
    const rights: readonly Grant[] = ['see', ...wanted.filter((grant) => grant !== 'see')]
    return { name: String(given.name), scope, grants: rights, endsAtMs }
  }

  #atStore(
    { token }: AdminRequest,
    work: (store: SessionStore) => Promise<AdminAnswer>,
  ): Promise<AdminAnswer> {
    const { store, log } = this.#options
    if (!mayDo(token, 'admin') && !isScoped(token.scope))
      return Promise.resolve(problem('not_allowed', needsScope))
    if (store === undefined) return Promise.resolve(problem('conflict', onlyInTopic))
    return atStore(log, () => work(store), unanswered)
  }
}

function linkData({ id, name, scope, grants: rights, endsAtMs, madeBy, madeAtMs }: Link): object {
  return {
    id,
    name,
    label: scopeText({ ...(scope.label && { label: scope.label }) }),
    rights,
    expiresAt: new Date(endsAtMs).toISOString(),
    createdBy: madeBy,
    createdAt: new Date(madeAtMs).toISOString(),
  }
}

/** Describes a link for the audit trail. */
function linkText({ id, name, scope, grants: rights, endsAtMs }: Link): string {
  return `${id} ${name}: ${rights.join(', ')}, ${scopeText(scope)}, until ${new Date(endsAtMs).toISOString()}`
}

/** Returns the end of a new link, in epoch milliseconds, or a text that says what is wrong. */
function endOf(given: unknown, makerEndsAtMs = Infinity): number | string {
  const nowMs = Date.now()
  if (typeof given !== 'string') return Math.min(nowMs + lastsMs.unlessSaid, makerEndsAtMs)
  const endsAtMs = parseTimestamp(given)
  if (endsAtMs === undefined || endsAtMs <= nowMs || endsAtMs > nowMs + lastsMs.most)
    return 'expiresAt is a time within the next 90 days, ISO 8601, such as 2026-10-27T09:30:00Z.'
  if (endsAtMs <= makerEndsAtMs) return endsAtMs
  const end = new Date(makerEndsAtMs).toISOString()
  return `expiresAt is after ${end}, when the token ends that makes the link: choose an earlier end, or take another token.`
}

const moreThanOwn =
  'A token makes only links that may not do more than itself: answers needs content, replay and test need operate, edit_url and rotate need admin, and the label is that of its scope.'
const needsScope = 'Without a scope, this needs the right admin: take another token.'
const onlyInTopic =
  'The catalog is in a file (catalog.source=file), so links can not be kept: set catalog.source=topic (docs/catalog-topic.md).'
const unanswered =
  'Kafka does not answer, or not in time: the link may have been made or revoked. List the links; if there is one that you do not have, revoke it.'
