import { BenchmarkFailure } from '../support/failure.ts'

/** What reached a dead destination once its breaker was open, beside what its schedule allows. */
export type ProbeCount = { requests: number; afterOpen: number; allowed: number; openedAfterS: number }

const minResults = 10
const timeoutMs = 5_000
const openMs = 5_000
const maxOpenMs = 60_000
/** Times in the log are whole milliseconds; a probe comes seconds after the breaker has opened. */
const graceMs = 10

/**
 * The breaker opens with the tenth timeout in the log. From then on one probe is allowed after 5 s, and as each
 * runs into its timeout of 5 s, the next after 10, 20, 40 and then 60 s: the defaults of `breaker.*`. Counts what the
 * worker began, by its log: on a busy machine a request comes long after it was begun.
 */
export function countProbes({
  log,
  destinationId,
  arrived,
  untilMs,
}: {
  log: string
  destinationId: string
  /** Requests that reached it. */
  arrived: number
  untilMs: number
}): ProbeCount {
  const timeouts = timeoutsIn(log, destinationId)
  if (arrived > timeouts.length) {
    throw new BenchmarkFailure(`${destinationId} got ${arrived} requests, and the log has ${timeouts.length}`)
  }
  const opening = timeouts[minResults - 1]
  const [first] = timeouts
  if (opening === undefined || first === undefined) {
    throw new BenchmarkFailure(
      `${destinationId} had fewer than ${minResults} timeouts: its breaker can't have opened`,
    )
  }
  const openedAtMs = opening.endedAtMs
  let allowed = 0
  let pauseMs = openMs
  for (let atMs = openedAtMs + openMs; atMs <= untilMs; atMs += timeoutMs + pauseMs) {
    allowed++
    pauseMs = Math.min(pauseMs * 2, maxOpenMs)
  }
  const afterOpen = timeouts.filter(({ begunAtMs }) => begunAtMs > openedAtMs + graceMs).length
  return {
    requests: timeouts.length,
    afterOpen,
    allowed,
    openedAfterS: (openedAtMs - first.begunAtMs) / 1_000,
  }
}

/** All that a destination gets which never answers; in the order in which they ended. */
function timeoutsIn(log: string, destinationId: string): { begunAtMs: number; endedAtMs: number }[] {
  return log.split('\n').flatMap((line) => {
    if (!line.includes('"outcome":"timeout"') || !line.includes(`"destination":"${destinationId}"`)) return []
    const time = /"time":"([^"]+)"/.exec(line)?.[1]
    const durationMs = /"durationMs":([\d.]+)/.exec(line)?.[1]
    if (time === undefined || durationMs === undefined) return []
    const endedAtMs = Date.parse(time)
    return [{ begunAtMs: endedAtMs - Number(durationMs), endedAtMs }]
  })
}
