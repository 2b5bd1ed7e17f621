import { type ReadonlySignal, signal, useSignal } from '@preact/signals'
import { useCallback, useEffect, useRef } from 'preact/hooks'
import { type Answer, isGivenUp, type Problem } from './answer.ts'
import { sessionEnded } from './session.ts'

/** What a page knows of a question to the server. */
export type Asked<T> = {
  /** The last answer. It stays while later questions fail. */
  readonly value: T | undefined
  readonly version: string | undefined
  /** Why the last question failed. `undefined` if it didn't. */
  readonly problem: Problem | undefined
  /** When the last answer came. */
  readonly at: number | undefined
}

export type Asking<T> = {
  readonly asked: ReadonlySignal<Asked<T>>
  /** Asks again at once. */
  readonly again: () => void
}

type Load<T> = (reading: { readonly signal: AbortSignal }) => Promise<Answer<T>>

const nothing = { value: undefined, version: undefined, problem: undefined, at: undefined }

/** The longest wait after failures, which double the wait each. */
const longestWaitMs = 30_000
const firstWaitMs = 2_000

/** Questions of the present page whose last answer is older than it should be, and since when. */
export const stale = signal<ReadonlyMap<symbol, number>>(new Map())

/** Counts up when something was changed, so that all questions of a page are asked again. */
const changes = signal(0)
export function askAllAgain(): void {
  changes.value += 1
}

/**
 * Asks the server, and again every `everyMs` (0: not again) while the tab is visible. Without an answer, it
 * asks again by itself, later and later. Another `key` forgets what was known.
 */
export function useAsk<T>(key: string, load: Load<T>, everyMs = 0): Asking<T> {
  const asked = useSignal<Asked<T>>(nothing)
  const again = useRef<() => void>(() => {})
  const changed = changes.value
  const loading = useRef(load)
  loading.current = load
  const lastKey = useRef(key)
  if (lastKey.current !== key) {
    lastKey.current = key
    asked.value = nothing
  }
  useEffect(() => {
    const poll = startPolling((reading) => loading.current(reading), asked, everyMs)
    again.current = poll.again
    return poll.stop
  }, [key, everyMs, changed])
  return { asked, again: useCallback(() => again.current(), []) }
}

type Slot<T> = { value: Asked<T> }

function startPolling<T>(load: Load<T>, asked: Slot<T>, everyMs: number) {
  const id = Symbol('question')
  let timer: ReturnType<typeof setTimeout> | undefined
  let current: AbortController | undefined
  let failures = 0
  const plan = (waitMs: number): void => {
    clearTimeout(timer)
    timer = setTimeout(() => void ask(), waitMs)
  }
  const ask = async (): Promise<void> => {
    if (document.hidden && asked.value.at !== undefined) return
    current?.abort()
    const own = new AbortController()
    current = own
    const answer = await load({ signal: own.signal })
    if (own.signal.aborted) return
    failures = answer.ok ? 0 : failures + 1
    settle(asked, answer, id)
    if (!answer.ok && isWorthRepeating(answer.problem))
      return plan(Math.min(longestWaitMs, firstWaitMs * 2 ** (failures - 1)))
    // What isn't there may come: a destination that was just added, or a message on its way.
    if (everyMs > 0 && (answer.ok || answer.problem.status === 404)) plan(everyMs)
  }
  const whenVisible = (): void => {
    if (!document.hidden && everyMs > 0) void ask()
  }
  document.addEventListener('visibilitychange', whenVisible)
  void ask()
  return {
    again: () => void ask(),
    stop: () => {
      clearTimeout(timer)
      current?.abort()
      document.removeEventListener('visibilitychange', whenVisible)
      markStale(id, undefined)
    },
  }
}

function settle<T>(asked: Slot<T>, answer: Answer<T>, id: symbol): void {
  if (answer.ok) {
    asked.value = { value: answer.value, version: answer.version, problem: undefined, at: Date.now() }
    markStale(id, undefined)
    return
  }
  if (isGivenUp(answer.problem)) return
  if (answer.problem.status === 401) sessionEnded(answer.problem)
  asked.value = { ...asked.value, problem: answer.problem }
  if (asked.value.at !== undefined) markStale(id, asked.value.at)
}

function isWorthRepeating({ status }: Problem): boolean {
  return status === 0 || status === 429 || status >= 500
}

function markStale(id: symbol, since: number | undefined): void {
  if (stale.value.get(id) === since) return
  const next = new Map(stale.value)
  if (since === undefined) next.delete(id)
  else next.set(id, since)
  stale.value = next
}
