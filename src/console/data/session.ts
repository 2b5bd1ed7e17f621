import { computed, signal } from '@preact/signals'
import { showAccent } from './accent-style.ts'
import { type Answer, answered, type Problem, within } from './answer.ts'
import { recall, remember } from './browser-memory.ts'
import { admin } from './client.ts'
import { proposeTheme, type Theme as Scheme } from './theme.ts'
import type { Grant, Right, Scope } from './types.ts'

export type Session = {
  readonly name: string
  /** Those of a token, or the grants of a customer's link. */
  readonly rights: readonly (Right | Grant)[]
  readonly scope: Scope
  /** Whether a customer's link has begun it. */
  readonly isLink: boolean
  /** Whether it sees what messages contain, and what endpoints have answered. */
  readonly seesContent: boolean
  /** Where the catalog is. One in a file is edited there. */
  readonly catalog: 'file' | 'topic'
  readonly theme: Theme | null
  /** When the session ends, if it does. */
  readonly endsAt: string | null
}

/** How the operator lets the console look. `logo`: its path below the console. */
export type Theme = {
  readonly name: string | null
  readonly accent: string | null
  readonly scheme: Scheme
  readonly logo: string | null
}

type Known =
  | { readonly is: 'unknown' }
  /** `isCustomer`: whoever was here last came by a link, and has no token. */
  | { readonly is: 'out'; readonly why: Problem | undefined; readonly isCustomer: boolean }
  | { readonly is: 'in'; readonly session: Session }

export const known = signal<Known>({ is: 'unknown' })

/**
 * Tells whether the session has a right, or else a grant that allows the same. What it may not do, the pages
 * don't offer.
 */
export function may(right: Right, grant?: Grant): boolean {
  const now = known.value
  if (now.is !== 'in') return false
  const { rights } = now.session
  return rights.includes(right) || (grant !== undefined && rights.includes(grant))
}

/** What the console is called. */
export const brand = computed(() => shownTheme()?.name ?? 'Sluice')
/** The address of the logo. It is below the console, as all files are. */
export const logo = computed(() => shownTheme()?.logo ?? undefined)

function shownTheme(): Theme | undefined {
  return known.value.is === 'in' ? (known.value.session.theme ?? undefined) : undefined
}

/** Whether the session may see what messages contain. */
export const seesContent = computed(() => known.value.is === 'in' && known.value.session.seesContent)

/** Whether the session may see what endpoints have answered. A link may see this alone. */
export const seesAnswers = computed(() => {
  const now = known.value
  return seesContent.value || (now.is === 'in' && now.session.rights.includes('answers'))
})

/** Whether the catalog is in a file, so that nothing of it can be changed here. */
export const isInFile = computed(() => known.value.is === 'in' && known.value.session.catalog === 'file')

/** Whether a customer's link has begun the session. */
export const isCustomer = computed(() => known.value.is === 'in' && known.value.session.isLink)

/** Whether the session is about the whole installation. Some calls are only for such sessions. */
export const isForAll = computed(() => known.value.is === 'in' && known.value.session.scope === 'all')

/**
 * Asks the server who is signed in. A one-time code (`#code=`) or a customer's link (`#link=`) in the address
 * signs in first.
 */
export async function openSession(): Promise<void> {
  const fragment = new URLSearchParams(location.hash.slice(1))
  const [code, link, refusal] = ['code', 'link', 'refused'].map((name) => fragment.get(name))
  if (typeof refusal === 'string') {
    forgetFragment()
    known.value = { is: 'out', why: refusalOf(refusal), isCustomer: false }
    return
  }
  if (typeof code === 'string' || typeof link === 'string') {
    const body = typeof code === 'string' ? { code } : { link: link ?? '' }
    forgetFragment()
    const answer = await answered(admin.post('/v1/session', { body, ...within() }))
    if (!answer.ok) {
      const isWrongLink = typeof code !== 'string' && answer.problem.status === 401
      const why = isWrongLink ? { ...answer.problem, ...linkIsOver } : answer.problem
      known.value = { is: 'out', why, isCustomer: typeof code !== 'string' }
      return
    }
  }
  await lookAtSession()
}

/**
 * Signs in by each new code or link that comes into the address while a page is open. Nothing that was shown
 * before stays: it may be of somebody else.
 */
export function followFragments(): void {
  addEventListener('hashchange', () => {
    const fragment = new URLSearchParams(location.hash.slice(1))
    if (!fragment.has('code') && !fragment.has('link')) return
    known.value = { is: 'unknown' }
    void openSession()
  })
}

const linkIsOver = {
  title: 'Your link has ended',
  detail: 'Ask whoever gave it to you for a new one.',
} as const
const sessionIsOver: Problem = {
  type: 'link-session',
  title: 'You are not signed in',
  status: 401,
  detail: 'Open your link again. If it has ended, ask whoever gave it to you for a new one.',
}

function forgetFragment(): void {
  history.replaceState(null, '', `${location.pathname}${location.search}`)
}

/** Says why the provider's sign-in did not succeed, and what to do. */
function refusalOf(why: string): Problem {
  const detail = refusals[why] ?? 'Try again, or sign in with a token.'
  return { type: 'refused', title: 'You are not signed in', status: 0, detail }
}

const refusals: Readonly<Record<string, string>> = {
  denied: 'The provider has refused. Try again, or ask whoever runs it.',
  stale: 'The sign-in was begun in another window or too long ago. Begin again.',
  no_right: 'The provider knows you, but you have no right here. Ask whoever runs Sluice.',
  failed:
    'The provider does not answer as it should. Try again later, or sign in with a token. The log of sluice admin has the reason.',
  busy: 'Too many tries came from your address. Try again in a minute.',
  unavailable: 'Kafka does not answer, so your session could not be kept. Try again.',
}

/** What the page to sign in has to know. `provider`: where a sign-in at the provider begins. */
export async function readSignIn(): Promise<{ readonly provider: string | null }> {
  try {
    const response = await fetch(new URL('sign-in.json', import.meta.url))
    const { provider }: { provider?: unknown } = Object(response.ok ? await response.json() : {})
    return { provider: typeof provider === 'string' ? provider : null }
  } catch {
    // A token signs in without it.
    return { provider: null }
  }
}

export async function signIn(token: string): Promise<Answer<unknown>> {
  const answer = await answered(admin.post('/v1/session', { body: { token }, ...within() }))
  if (answer.ok) await lookAtSession()
  return answer
}

export async function signOut(): Promise<void> {
  const answer = await answered(admin.delete('/v1/session', within()))
  leave(answer.ok || answer.problem.status === 401 ? undefined : answer.problem)
}

/** Shows the page to sign in: the session has ended while a page was open. */
export function sessionEnded(why: Problem): void {
  if (known.value.is === 'in') leave(why)
}

/** Shows the page to sign in. Customers have no token, so it tells them about their link. */
function leave(why: Problem | undefined): void {
  const cameByLink =
    known.value.is === 'in' ? known.value.session.isLink : recall('sluice-came-by') === 'link'
  const isOver = why === undefined || why.status === 401
  known.value = { is: 'out', why: isOver && cameByLink ? sessionIsOver : why, isCustomer: cameByLink }
}

async function lookAtSession(): Promise<void> {
  const answer = await answered(admin.get('/v1/session', within()))
  if (!answer.ok) {
    leave(answer.problem.status === 401 ? undefined : answer.problem)
    return
  }
  const { name, rights, scope, ends, content, catalog, isLink, theme } = answer.value
  remember('sluice-came-by', isLink ? 'link' : 'token')
  const session = { name, rights, scope, isLink, endsAt: ends, seesContent: content, catalog, theme }
  known.value = { is: 'in', session }
  if (theme === null) return
  if (theme.accent !== null) showAccent(theme.accent)
  proposeTheme(theme.scheme)
}
