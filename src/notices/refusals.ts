import { describeOutcome, type Outcome } from '../delivery/outcomes/outcome.ts'
import type { HookResult } from '../pipeline/decision.ts'
import type { PipelineObserver } from '../pipeline/pipeline-ports.ts'
import type { HookName } from './board.ts'
import type { AnsweredHook, FailingHook } from './notice-record.ts'

export type RefusalsOptions = {
  /** The id of the source of notices. Deliveries of that source's own messages are ignored. */
  readonly sourceId: string
  /** A hook is reported once it has refused everything for this time, in milliseconds. */
  readonly reportAfterMs: number
  /** Returns milliseconds of a monotonic clock. */
  readonly monotonicMs: () => number
  /** Returns epoch milliseconds. */
  readonly now: () => number
}

/**
 * The fewest refusals after which a hook is reported. One refused message says nothing about its hook. What
 * another process has reported is reported from the first refusal on.
 */
const leastRefusals = 3
/** If a hook has refused nothing for this time, in milliseconds, nobody knows whether it still would. */
const quietMs = 65 * 60_000

/** A hook whose last answers were refusals. Times are milliseconds of the monotonic clock. */
type Refusing = {
  readonly destinationId: string
  readonly hookId: string
  readonly sinceMs: number
  refusals: number
  lastMs: number
  lastOutcome: Outcome
}

/**
 * Watches which hooks refuse everything: their answers say that messages have failed for good, such as 401,
 * 403 or 404, and they accept nothing in between. Failures that are tried again say neither.
 */
export class Refusals {
  readonly #options: RefusalsOptions
  readonly #hooks = new Map<string, Refusing>()
  /** The hooks that other processes report too, and when each last accepted a request; 0 if it hasn't. */
  #followed = new Map<string, AnsweredHook>()

  readonly observer: Partial<PipelineObserver> = {
    attempted: ({ destinationId, sourceId }, result) => {
      if (sourceId !== this.#options.sourceId) this.#attempted(destinationId, result)
    },
  }

  constructor(options: RefusalsOptions) {
    this.#options = options
  }

  /** Sets the hooks that any process reports. From now on, `takeAccepted` has their successes. */
  follow(hooks: Iterable<HookName>): void {
    const before = this.#followed
    this.#followed = new Map()
    for (const { destinationId, hookId } of hooks) {
      const key = keyOf(destinationId, hookId)
      this.#followed.set(key, before.get(key) ?? { destinationId, hookId, atMs: 0 })
    }
  }

  /** Returns the hooks to report, with times in epoch milliseconds. */
  refusing(): readonly FailingHook[] {
    const { monotonicMs, now, reportAfterMs } = this.#options
    const nowMs = monotonicMs()
    const aheadMs = now() - nowMs
    this.#forgetQuiet(nowMs)
    return [...this.#hooks].flatMap(([key, { refusals, sinceMs, lastMs, lastOutcome, ...hook }]) => {
      const isReported = refusals >= leastRefusals && nowMs - sinceMs >= reportAfterMs
      if (!isReported && !this.#followed.has(key)) return []
      const times = { sinceMs: Math.round(sinceMs + aheadMs), lastFailedMs: Math.round(lastMs + aheadMs) }
      return [{ ...hook, ...times, lastOutcome: describeOutcome(lastOutcome) }]
    })
  }

  /** Returns the followed hooks that have accepted a request since the last call. */
  takeAccepted(): readonly AnsweredHook[] {
    const accepted = [...this.#followed.values()].filter(({ atMs }) => atMs > 0)
    for (const hook of accepted)
      this.#followed.set(keyOf(hook.destinationId, hook.hookId), { ...hook, atMs: 0 })
    return accepted
  }

  /** Returns for how long each hook has refused everything in this process, in milliseconds. */
  lasting(): readonly (HookName & { readonly forMs: number })[] {
    const nowMs = this.#options.monotonicMs()
    this.#forgetQuiet(nowMs)
    return [...this.#hooks.values()].flatMap(({ destinationId, hookId, refusals, sinceMs }) =>
      refusals < leastRefusals ? [] : [{ destinationId, hookId, forMs: nowMs - sinceMs }],
    )
  }

  #attempted(destinationId: string, { hookId, outcome, verdict }: HookResult): void {
    if (verdict.kind === 'delivered') {
      if (this.#hooks.size > 0) this.#hooks.delete(keyOf(destinationId, hookId))
      if (this.#followed.size > 0) this.#accepted(destinationId, hookId)
    } else if (verdict.kind === 'final' && outcome.kind === 'answer')
      this.#refused(destinationId, hookId, outcome)
  }

  #accepted(destinationId: string, hookId: string): void {
    const key = keyOf(destinationId, hookId)
    if (this.#followed.has(key)) this.#followed.set(key, { destinationId, hookId, atMs: this.#options.now() })
  }

  #refused(destinationId: string, hookId: string, outcome: Outcome): void {
    const nowMs = this.#options.monotonicMs()
    const key = keyOf(destinationId, hookId)
    const known = this.#hooks.get(key)
    if (known === undefined) {
      this.#hooks.set(key, {
        destinationId,
        hookId,
        sinceMs: nowMs,
        refusals: 1,
        lastMs: nowMs,
        lastOutcome: outcome,
      })
      return
    }
    known.refusals++
    known.lastMs = nowMs
    known.lastOutcome = outcome
  }

  #forgetQuiet(nowMs: number): void {
    for (const [key, { lastMs }] of this.#hooks) if (nowMs - lastMs >= quietMs) this.#hooks.delete(key)
  }
}

function keyOf(destinationId: string, hookId: string): string {
  return JSON.stringify([destinationId, hookId])
}
