import { BenchmarkFailure } from '../support/failure.ts'

/** What reached a dead destination once its breaker was open, beside what its schedule allows. */
export type ProbeCount = { requests: number; afterOpen: number; allowed: number; openedAfterS: number }

const minResults = 10
const timeoutMs = 5_000
const openMs = 5_000
const maxOpenMs = 60_000
/** A request that was begun before the breaker opened may still be on its way to the receiver. */
const graceMs = 250

/**
 * The breaker opens with the tenth timeout in the log. From then on one probe is allowed after 5 s, and as each
 * runs into its timeout of 5 s, the next after 10, 20, 40 and then 60 s: the defaults of `breaker.*`.
 */
export function countProbes({
  log,
  destinationId,
  requestsAtMs,
  untilMs,
}: {
  log: string
  destinationId: string
  /** When its requests came, in epoch milliseconds. */
  requestsAtMs: readonly number[]
  untilMs: number
}): ProbeCount {
  const openedAtMs = timeoutsIn(log, destinationId)[minResults - 1]
  const [firstAtMs] = requestsAtMs
  if (openedAtMs === undefined || firstAtMs === undefined) {
    throw new BenchmarkFailure(
      `${destinationId} had fewer than ${minResults} timeouts: its breaker can't have opened`,
    )
  }
  let allowed = 0
  let pauseMs = openMs
  for (let atMs = openedAtMs + openMs; atMs <= untilMs; atMs += timeoutMs + pauseMs) {
    allowed++
    pauseMs = Math.min(pauseMs * 2, maxOpenMs)
  }
  const afterOpen = requestsAtMs.filter((atMs) => atMs > openedAtMs + graceMs).length
  const openedAfterS = (openedAtMs - firstAtMs) / 1_000
  return { requests: requestsAtMs.length, afterOpen, allowed, openedAfterS }
}

function timeoutsIn(log: string, destinationId: string): number[] {
  return log.split('\n').flatMap((line) => {
    if (!line.includes('"outcome":"timeout"') || !line.includes(`"destination":"${destinationId}"`)) return []
    const time = /"time":"([^"]+)"/.exec(line)?.[1]
    return time === undefined ? [] : [Date.parse(time)]
  })
}
