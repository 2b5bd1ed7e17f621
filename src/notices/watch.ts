import { describeForCustomer, isOwnFault, type Outcome } from '../delivery/outcomes/outcome.ts'
import type { HookResult } from '../pipeline/decision.ts'
import type { Delivery } from '../pipeline/delivery.ts'
import type { OpenHook, ParkReason, PipelineObserver } from '../pipeline/pipeline-ports.ts'
import { rulesReasons } from './notice.ts'
import type { AnsweredHook, CountedDestination, FailingHook, Report } from './notice-record.ts'

/**
 * A period in which the network of this process was suspect. Failures in this period say nothing about the
 * hooks. Times are milliseconds of a monotonic clock. `untilMs` is `Infinity` while the network is still
 * suspect.
 */
export type EgressOutage = { readonly sinceMs: number; readonly untilMs: number }

export type WatchOptions = {
  /** The id of the source of notices. The watch ignores deliveries of that source's own messages. */
  readonly sourceId: string
  /** The watch reports a hook as failing when it has failed for this time, in milliseconds. */
  readonly failingAfterMs: number
  /** Returns the last outage of the network of this process, if there was one. */
  readonly egressOutage?: () => EgressOutage | undefined
  /** Called for each failed attempt that the watch ignores because the network of this process is suspect. */
  readonly onWithheld?: () => void
  /** Returns milliseconds of a monotonic clock, the same clock that `egressOutage` uses. */
  readonly monotonicMs: () => number
  /** Returns epoch milliseconds. */
  readonly now: () => number
}

/** The least number of failures at which a hook is reported as failing. */
const leastFailures = 3
/**
 * If a hook has got no request for this time in milliseconds, nobody knows whether it works. While there are
 * messages for a hook, it gets a request at least once an hour.
 */
const quietMs = 65 * 60_000

/**
 * A hook that has failed, or whose successes are reported (`follow`). Times are milliseconds of a monotonic
 * clock, so that a change of the machine's clock doesn't change how long a hook seems to have failed.
 */
type Watched = {
  /** The number of failures since the last success. */
  failures: number
  sinceMs: number
  /** The time of the third failure since the last success. From then on, the hook counts as failing. */
  downMs: number
  lastFailedMs: number
  lastOutcome: Outcome | undefined
  /**
   * The time when the hook last accepted a request. It is 0 if this was already reported, or if the hook has
   * accepted no request.
   */
  answeredMs: number
  isFollowed: boolean
}

type Counts = { readonly paced: Map<string, number>; readonly deadLetters: Map<string, number> }

/**
 * Collects the content of the next report of this process: failing hooks, and counts of dead letters and of
 * deliveries that are put off. While the watch is off, it collects nothing. If a hook has never failed, its
 * successes cost hardly more than one comparison each.
 */
export class Watch {
  readonly #options: WatchOptions
  readonly #hooks = new Map<string, Map<string, Watched>>()
  readonly #counts = new Map<string, Counts>()
  #isOn = false

  readonly observer: Pick<
    PipelineObserver,
    'attempted' | 'parked' | 'deadLettered' | 'askedForToken' | 'rulesTooLong'
  > = {
    attempted: (delivery, result) => {
      if (!this.#isLookedAt(delivery)) return
      if (isThrottled(result.outcome)) count(this.#countsOf(delivery).paced, 'throttled')
      this.#attempted(delivery.destinationId, result)
    },
    parked: (delivery, why) => {
      if (this.#isLookedAt(delivery) && isPaced(why)) count(this.#countsOf(delivery).paced, why)
    },
    rulesTooLong: (destinationId, limit) => {
      if (this.#isOn) count(this.#countsOf({ destinationId }).paced, rulesReasons[limit])
    },
    deadLettered: (reason, _detail, _where, delivery) => {
      // Dead letters of an automatic pause aren't counted, because there is a notice about the pause itself.
      if (reason === 'auto_paused' || this.#isSuspect) return
      if (delivery !== undefined && this.#isLookedAt(delivery))
        count(this.#countsOf(delivery).deadLetters, reason)
    },
    askedForToken: (destinationId, hookId, asked, definition) => {
      const isOwn = definition?.sources?.includes(this.#options.sourceId) ?? true
      if (this.#isOn && !isOwn && !asked.isKept) this.#askedForToken(destinationId, hookId, asked.problem)
    },
  }

  constructor(options: WatchOptions) {
    this.#options = options
  }

  set isOn(isOn: boolean) {
    this.#isOn = isOn
    if (isOn) return
    this.#hooks.clear()
    this.#counts.clear()
  }

  /**
   * Sets the hooks whose successes are reported. Pass the hooks with a `failing` notice, and the hooks of
   * destinations with a failure clock. A failure clock says since when all URLs of a destination have failed.
   */
  follow(hooks: readonly { readonly destinationId: string; readonly hookId: string }[]): void {
    for (const ofDestination of this.#hooks.values())
      for (const watched of ofDestination.values()) watched.isFollowed = false
    for (const { destinationId, hookId } of hooks) this.#watchedOf(destinationId, hookId).isFollowed = true
  }

  /**
   * Returns the report, with times in epoch milliseconds, and starts to collect the next report. `open`: the
   * hooks whose breakers are open.
   */
  take(open: readonly OpenHook[]): Report {
    const nowMs = this.#options.monotonicMs()
    const aheadMs = this.#options.now() - nowMs
    const soundMs = Math.min(nowMs, this.#outage?.untilMs ?? 0)
    const openForMs = new Map(open.map((hook) => [keyOf(hook), hook.openForMs]))
    const failing: FailingHook[] = []
    const answered: AnsweredHook[] = []
    for (const [destinationId, ofDestination] of this.#hooks) {
      for (const [hookId, watched] of ofDestination) {
        const hook = { destinationId, hookId }
        this.#forgive(watched)
        // If a breaker opened during an outage, the time for which it has been open counts only from the end
        // of the outage.
        const openMs = Math.min(openForMs.get(keyOf(hook)) ?? 0, nowMs - soundMs)
        const sinceMs = this.#failingSince(watched, openMs, nowMs)
        if (sinceMs !== undefined)
          failing.push({ ...hook, sinceMs: Math.round(sinceMs + aheadMs), ...lastOf(watched, aheadMs) })
        if (watched.isFollowed && watched.answeredMs > 0)
          answered.push({ ...hook, atMs: Math.round(watched.answeredMs + aheadMs) })
        watched.answeredMs = 0
        if (isForgotten(watched, openMs, nowMs)) ofDestination.delete(hookId)
      }
      if (ofDestination.size === 0) this.#hooks.delete(destinationId)
    }
    failing.sort((one, other) => one.sinceMs - other.sinceMs)
    return {
      failing,
      answered,
      counts: this.#takeCounts(),
    }
  }

  #isLookedAt({ sourceId }: Delivery): boolean {
    return this.#isOn && sourceId !== this.#options.sourceId
  }

  #attempted(destinationId: string, { hookId, outcome, verdict }: HookResult): void {
    // Nothing was sent, and nothing is known about the hook.
    if (isOwnFault(outcome)) return
    const nowMs = this.#options.monotonicMs()
    if (hasAnswered(outcome, verdict)) {
      const watched = this.#hooks.size === 0 ? undefined : this.#hooks.get(destinationId)?.get(hookId)
      if (watched === undefined) return
      watched.failures = 0
      watched.answeredMs = nowMs
      return
    }
    this.#failed(destinationId, hookId, outcome)
  }

  /** A hook without a token gets no request, so its failed requests for one count instead. */
  #askedForToken(destinationId: string, hookId: string, problem: string | undefined): void {
    if (problem !== undefined) {
      this.#failed(destinationId, hookId, { kind: 'login', detail: problem })
      return
    }
    const watched = this.#hooks.get(destinationId)?.get(hookId)
    if (watched?.lastOutcome?.kind !== 'login') return
    watched.failures = 0
    watched.answeredMs = this.#options.monotonicMs()
  }

  #failed(destinationId: string, hookId: string, outcome: Outcome): void {
    const nowMs = this.#options.monotonicMs()
    if (this.#isSuspect) {
      this.#options.onWithheld?.()
      return
    }
    const watched = this.#watchedOf(destinationId, hookId)
    this.#forgive(watched)
    if (watched.failures === 0) watched.sinceMs = nowMs
    watched.failures++
    if (watched.failures <= leastFailures) watched.downMs = nowMs
    watched.lastFailedMs = nowMs
    watched.lastOutcome = outcome
  }

  get #outage(): EgressOutage | undefined {
    return this.#options.egressOutage?.()
  }

  get #isSuspect(): boolean {
    return this.#outage?.untilMs === Number.POSITIVE_INFINITY
  }

  /**
   * If a hook didn't count as failing before the last outage of the network, and hasn't failed since the
   * outage, forgets its failures.
   */
  #forgive(watched: Watched): void {
    const outage = this.#outage
    if (outage === undefined || watched.failures === 0) return
    if (watched.downMs < outage.sinceMs || watched.lastFailedMs > outage.untilMs) return
    watched.failures = 0
    watched.lastFailedMs = 0
  }

  /**
   * Returns the time since which the hook has failed. Returns `undefined` if the hook doesn't fail, or has
   * failed for less than `failingAfterMs`. If a hook's breaker has been open for `failingAfterMs`, the hook
   * counts as failing, even if it accepts a request now and then.
   */
  #failingSince(
    { failures, sinceMs, lastFailedMs }: Watched,
    openMs: number,
    nowMs: number,
  ): number | undefined {
    const { failingAfterMs } = this.#options
    const openedMs = nowMs - openMs
    const hasFailedSince = openMs >= failingAfterMs && lastFailedMs >= openedMs
    const isDown = failures >= leastFailures && nowMs - sinceMs >= failingAfterMs
    if (isDown && nowMs - lastFailedMs < quietMs)
      return hasFailedSince ? Math.min(sinceMs, openedMs) : sinceMs
    return hasFailedSince ? openedMs : undefined
  }

  #watchedOf(destinationId: string, hookId: string): Watched {
    let ofDestination = this.#hooks.get(destinationId)
    if (ofDestination === undefined) this.#hooks.set(destinationId, (ofDestination = new Map()))
    let watched = ofDestination.get(hookId)
    if (watched === undefined) {
      watched = {
        failures: 0,
        sinceMs: 0,
        downMs: 0,
        lastFailedMs: 0,
        lastOutcome: undefined,
        answeredMs: 0,
        isFollowed: false,
      }
      ofDestination.set(hookId, watched)
    }
    return watched
  }

  /** Returns true if the last requests to a hook of the destination failed. */
  #isDown(destinationId: string): boolean {
    const hooks = this.#hooks.get(destinationId)
    return hooks !== undefined && [...hooks.values()].some(({ failures }) => failures >= leastFailures)
  }

  #countsOf({ destinationId }: Pick<Delivery, 'destinationId'>): Counts {
    let counts = this.#counts.get(destinationId)
    if (counts === undefined) {
      counts = { paced: new Map(), deadLetters: new Map() }
      this.#counts.set(destinationId, counts)
    }
    return counts
  }

  /**
   * Returns the counts. Leaves out deliveries that were put off because a hook is failing, and all counts
   * while the network of this process is suspect.
   */
  #takeCounts(): readonly CountedDestination[] {
    if (this.#isSuspect) this.#counts.clear()
    for (const [destinationId, { paced, deadLetters }] of this.#counts) {
      if (this.#isDown(destinationId)) paced.clear()
      if (paced.size === 0 && deadLetters.size === 0) this.#counts.delete(destinationId)
    }
    const taken = [...this.#counts]
    this.#counts.clear()
    return taken.map(([destinationId, { paced, deadLetters }]) => ({
      destinationId,
      paced: Object.fromEntries(paced),
      dead_letters: Object.fromEntries(deadLetters),
    }))
  }
}

/**
 * Returns true if the answer shows that the hook works. This is also true if the hook refuses a message for
 * good, which makes the message a dead letter.
 */
function hasAnswered(outcome: Outcome, verdict: HookResult['verdict']): boolean {
  return outcome.kind === 'answer' && (verdict.kind !== 'retry' || isThrottled(outcome))
}

/** Returns true if the outcome shows that the URL works and asks for fewer requests. */
function isThrottled(outcome: Outcome): boolean {
  return outcome.kind === 'answer' && outcome.status === 429
}

/**
 * Returns true if a delivery was put off without a failed attempt, because its destination gets more than it
 * accepts, asks for pauses, or has failing hooks. If a destination has failing hooks, the decider drops the
 * counts of such deliveries.
 */
function isPaced(why: ParkReason): boolean {
  return why === 'paced' || why === 'overflow' || why === 'not_before'
}

/** `aheadMs`: by how much epoch milliseconds are higher than the times in `watched`. */
function lastOf(
  { lastFailedMs, lastOutcome }: Watched,
  aheadMs: number,
): Pick<FailingHook, 'lastFailedMs' | 'lastOutcome'> {
  return {
    lastFailedMs: Math.round(lastFailedMs + aheadMs),
    lastOutcome: lastOutcome === undefined ? '' : describeForCustomer(lastOutcome).slice(0, mostCharacters),
  }
}

const mostCharacters = 200

function isForgotten(
  { failures, lastFailedMs, isFollowed }: Watched,
  openMs: number,
  nowMs: number,
): boolean {
  if (isFollowed) return false
  return (failures === 0 && openMs === 0) || nowMs - lastFailedMs >= quietMs
}

function keyOf({ destinationId, hookId }: { destinationId: string; hookId: string }): string {
  return JSON.stringify([destinationId, hookId])
}

function count(counts: Map<string, number>, reason: string): void {
  counts.set(reason, (counts.get(reason) ?? 0) + 1)
}
