import type { Rate } from '../async/token-bucket.ts'
import type { Endpoint, EndpointHook } from './endpoint.ts'

/** A paced lane may start this many seconds' worth of attempts at once, after an idle time. */
const burstS = 0.05

/**
 * Returns how many deliveries of a destination may be in flight in this process. With one URL, and with
 * `failover`, this is what the URL was learned to take. If each message goes to several URLs, nothing is
 * learned, so that no URL holds up the others.
 */
export function laneCapOf({ definition, hooks }: Endpoint): number {
  const most = definition.maxInFlight
  const [only] = hooks
  if (hooks.length === 1 && only !== undefined) return only.breaker.state === 'closed' ? only.load.cap : most
  if (definition.strategy !== 'failover') return most
  return hooks.find(isClosed)?.load.cap ?? most
}

/**
 * Returns the rate of attempts in this process: the lower one of `limit`, which is this process's part of the
 * destination's own limit, and of what its URLs were learned to take.
 */
export function laneRateOf({ definition, hooks }: Endpoint, limit: Rate | undefined): Rate | undefined {
  let most: number | undefined
  for (const { breaker, load } of hooks) {
    if (breaker.state !== 'closed') continue
    const perSecond = load.mayBePaced ? load.perSecondAt(performance.now()) : undefined
    if (perSecond === undefined) return limit
    most = Math.max(most ?? 0, perSecond)
    if (definition.strategy === 'failover') break
  }
  if (most === undefined || (limit !== undefined && limit.perSecond <= most)) return limit
  return { perSecond: most, burst: Math.max(1, Math.floor(most * burstS)) }
}

function isClosed({ breaker }: EndpointHook): boolean {
  return breaker.state === 'closed'
}
