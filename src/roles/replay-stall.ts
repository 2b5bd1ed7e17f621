import type { Job } from '../replay/jobs.ts'

const stalledAfterMs = 30_000

/**
 * Returns a function that looks at a running replay at the time `nowMs`. If the replay makes no progress for
 * 30 seconds, the function calls `say`, once for each stall.
 */
export function createStallWatch(say: (line: string) => void): (job: Job, nowMs: number) => void {
  let last: string | undefined
  let sinceMs = 0
  let isSaid = false
  return function look({ order, progress }, nowMs) {
    // An owner that fails writes a note for each try. So only the position and the counts show progress.
    const position = JSON.stringify([progress?.offsets, progress?.done])
    if (position !== last) {
      last = position
      sinceMs = nowMs
      isSaid = false
      return
    }
    if (isSaid || nowMs - sinceMs < stalledAfterMs) return
    isSaid = true
    say(
      `no progress for ${stalledAfterMs / 1_000} s: either its messages are delivered more slowly than ` +
        `${order.perSecond} a second, or the worker ${progress?.owner} can not continue: see that worker's log`,
    )
  }
}
