import { computed, signal } from '@preact/signals'
import { type Answer, call, type Problem } from './answer.ts'
import type { Right, Scope } from './types.ts'

export type Session = {
  readonly name: string
  readonly right: Right
  readonly scope: Scope
  /** When the session ends, if it does. */
  readonly endsAt: string | null
}

type Known =
  | { readonly is: 'unknown' }
  | { readonly is: 'out'; readonly why: Problem | undefined }
  | { readonly is: 'in'; readonly session: Session }

export const known = signal<Known>({ is: 'unknown' })

const order: readonly Right[] = ['read', 'operate', 'admin']

/** Tells whether the session has a right. What it has not, the pages don't offer. */
export function may(right: Right): boolean {
  const now = known.value
  return now.is === 'in' && order.indexOf(now.session.right) >= order.indexOf(right)
}

/** Whether the session is about the whole installation. Some calls are only for such sessions. */
export const isForAll = computed(() => known.value.is === 'in' && known.value.session.scope === 'all')

type SessionAnswer = {
  readonly name: string
  readonly right: Right
  readonly scope: Scope
  readonly ends?: string | null
}

/** Asks the server who is signed in. A one-time code in the address (`#code=`) signs in first. */
export async function openSession(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (code !== null) {
    history.replaceState(null, '', `${location.pathname}${location.search}`)
    const answer = await call('/v1/session', { method: 'POST', body: { code } })
    if (!answer.ok) {
      known.value = { is: 'out', why: answer.problem }
      return
    }
  }
  await lookAtSession()
}

export async function signIn(token: string): Promise<Answer<unknown>> {
  const answer = await call('/v1/session', { method: 'POST', body: { token } })
  if (answer.ok) await lookAtSession()
  return answer
}

export async function signOut(): Promise<void> {
  const answer = await call('/v1/session', { method: 'DELETE' })
  known.value = { is: 'out', why: answer.ok || answer.problem.status === 401 ? undefined : answer.problem }
}

/** Shows the page to sign in: the session has ended while a page was open. */
export function sessionEnded(why: Problem): void {
  if (known.value.is === 'in') known.value = { is: 'out', why }
}

async function lookAtSession(): Promise<void> {
  const answer = await call<SessionAnswer>('/v1/session')
  if (!answer.ok) {
    known.value = { is: 'out', why: answer.problem.status === 401 ? undefined : answer.problem }
    return
  }
  const { name, right, scope, ends = null } = answer.value
  known.value = { is: 'in', session: { name, right, scope, endsAt: ends } }
}
