import { computed, signal } from '@preact/signals'
import { type Answer, answered, type Problem, within } from './answer.ts'
import { admin } from './client.ts'
import type { Grant, Right, Scope } from './types.ts'

export type Session = {
  readonly name: string
  /** Those of a token, or the grants of a customer's link. */
  readonly rights: readonly (Right | Grant)[]
  readonly scope: Scope
  /** When the session ends, if it does. */
  readonly endsAt: string | null
}

type Known =
  | { readonly is: 'unknown' }
  | { readonly is: 'out'; readonly why: Problem | undefined }
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

/** Whether the session is about the whole installation. Some calls are only for such sessions. */
export const isForAll = computed(() => known.value.is === 'in' && known.value.session.scope === 'all')

/**
 * Asks the server who is signed in. A one-time code (`#code=`) or a customer's link (`#link=`) in the address
 * signs in first.
 */
export async function openSession(): Promise<void> {
  const fragment = new URLSearchParams(location.hash.slice(1))
  const [code, link] = [fragment.get('code'), fragment.get('link')]
  if (code !== null || link !== null) {
    const body = code === null ? { link: link ?? '' } : { code }
    history.replaceState(null, '', `${location.pathname}${location.search}`)
    const answer = await answered(admin.post('/v1/session', { body, ...within() }))
    if (!answer.ok) {
      known.value = { is: 'out', why: answer.problem }
      return
    }
  }
  await lookAtSession()
}

export async function signIn(token: string): Promise<Answer<unknown>> {
  const answer = await answered(admin.post('/v1/session', { body: { token }, ...within() }))
  if (answer.ok) await lookAtSession()
  return answer
}

export async function signOut(): Promise<void> {
  const answer = await answered(admin.delete('/v1/session', within()))
  known.value = { is: 'out', why: answer.ok || answer.problem.status === 401 ? undefined : answer.problem }
}

/** Shows the page to sign in: the session has ended while a page was open. */
export function sessionEnded(why: Problem): void {
  if (known.value.is === 'in') known.value = { is: 'out', why }
}

async function lookAtSession(): Promise<void> {
  const answer = await answered(admin.get('/v1/session', within()))
  if (!answer.ok) {
    known.value = { is: 'out', why: answer.problem.status === 401 ? undefined : answer.problem }
    return
  }
  const { name, rights, scope, ends } = answer.value
  known.value = { is: 'in', session: { name, rights, scope, endsAt: ends } }
}
