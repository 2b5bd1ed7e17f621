import type { Rate } from '../async/token-bucket.ts'
import type { Endpoint, EndpointHook } from './endpoint.ts'

/** A paced lane may start this many seconds' worth of attempts at once, after an idle time. */
const burstS = 0.05

/**
 * Returns how many deliveries of a destination may be in flight in this process.
 *
 * - With `failover`, a message goes to the first URL that works. So the limit is what this URL takes.
 * - With `all`, a message goes to every URL. So that no URL holds up the others, the limit is what they take
 *   together. Requests to a URL that has no room wait in the bulkhead. If as many wait there as may be
 *   in flight, nothing starts.
 */
export function laneCapOf({ definition, hooks }: Endpoint): number {
  const most = definition.maxInFlight
  const [only] = hooks
  if (hooks.length === 1 && only !== undefined) return only.breaker.state === 'closed' ? only.load.cap : most
  const well = hooks.filter(isClosed)
  const [first] = well
  if (first === undefined) return most
  if (definition.strategy === 'failover') return first.load.cap
  if (well.some(({ breaker, load }) => load.waiting >= most && breaker.heldUntilMs === 0)) return 0
  return Math.min(
    most,
    well.reduce((sum, { load }) => sum + load.cap, 0),
  )
}

/**
 * Returns the rate of attempts in this process: the lower one of `limit`, which is this process's part of the
 * destination's own limit, and of what its URLs were learned to take.
 */
export function laneRateOf({ definition, hooks }: Endpoint, limit: Rate | undefined): Rate | undefined {
  const nowMs = performance.now()
  let most: number | undefined
  for (const { breaker, load } of hooks) {
    if (breaker.state !== 'closed') continue
    const perSecond = load.perSecondAt(nowMs)
    if (perSecond === undefined) return limit
    most = Math.max(most ?? 0, perSecond)
    if (definition.strategy === 'failover') break
  }
  if (most === undefined || (limit !== undefined && limit.perSecond <= most)) return limit
  return { perSecond: most, burst: Math.max(1, Math.floor(most * burstS)) }
}

/**
 * Returns the hooks whose request must wait in the bulkhead, because they have no room or because others wait
 * there for them already. The hook with the most room isn't among them: the lane waits for it.
 */
export function spilledHooks(
  { definition, hooks: all }: Endpoint,
  hooks: readonly EndpointHook[],
  nowMs: number,
): readonly EndpointHook[] {
  if (all.length === 1 || definition.strategy === 'failover') return none
  const spilled = hooks.filter(({ load }) => load.waiting > 0 || !load.hasRoom(nowMs))
  if (spilled.length === 0 || spilled.length < all.filter(isClosed).length) return spilled
  const roomiest = spilled.reduce((best, hook) => (hook.load.room > best.load.room ? hook : best))
  return spilled.filter((hook) => hook !== roomiest)
}

const none: readonly EndpointHook[] = []

function isClosed({ breaker }: EndpointHook): boolean {
  return breaker.state === 'closed'
}
