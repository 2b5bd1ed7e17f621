// The retry ladder, which decides how long the next wait of a delivery is and when the delivery is given up.
//
// A rung is a step of the ladder. A tier is a topic that holds the records of all rungs with the same wait.
// The default ladder (`src/config/retry-keys.ts`) has the waits `1m,10m,1h,1h,1h`, and then `10m` as often as
// it fits into the limit of `4h`. With this ladder, the last attempt comes 3 h 51 min after the first.

/**
 * A ladder. Rungs are counted from 0. The wait of rung N is `waitsMs[N]`, or `thenMs` if `waitsMs` has no
 * such entry.
 */
export type Ladder = {
  /** Waits of the first rungs, in milliseconds. Not empty. */
  readonly waitsMs: readonly number[]
  /**
   * The wait of every later rung, in milliseconds. The ladder repeats this wait as often as it fits into
   * `limitMs`.
   */
  readonly thenMs: number
  /**
   * The time within which another attempt may still be due, in milliseconds. It starts at the first attempt,
   * or at the first wait for a turn or for the proxy.
   */
  readonly limitMs: number
}

export type NextStep = { kind: 'wait'; rung: number; waitMs: number } | { kind: 'expired' }

export function waitOf(ladder: Ladder, rung: number): number {
  return ladder.waitsMs[rung] ?? ladder.thenMs
}

/**
 * Returns the time when a delivery expires, in epoch milliseconds. `startedMs` is the time when its clock
 * started: the time of the first attempt, or of the first wait for a turn or for the proxy.
 */
export function clockEnd({ limitMs }: Ladder, startedMs: number): number {
  return startedMs + limitMs
}

/**
 * Returns the time when a delivery expires. If the delivery's clock isn't running (`expiresAtMs` is 0), the
 * clock starts at `nowMs`.
 */
export function startClock(ladder: Ladder, expiresAtMs: number, nowMs: number): number {
  return expiresAtMs === 0 ? clockEnd(ladder, nowMs) : expiresAtMs
}

/** Returns the distinct waits of the ladder, ascending. There is a retry topic for each of these waits. */
export function tiersOf(ladder: Ladder): number[] {
  return [...new Set([...ladder.waitsMs, ladder.thenMs])].sort((a, b) => a - b)
}

/**
 * Returns the next rung, at or after `rung`, for a delivery that has to wait again from `nowMs` on.
 *
 * If the attempt after a rung would be due later than `expiresAtMs`, the rung is skipped, because a later
 * rung may be short enough. `notBeforeMs` is the time of a `Retry-After`, before which the delivery must not
 * be tried. A rung that ends before this time is skipped too if a later rung lasts until this time. If no
 * rung lasts until then, the longest rung that ends before `expiresAtMs` is taken, and the delivery waits
 * again after this rung. So a `Retry-After` never costs a delivery its last attempt.
 */
export function nextStep(
  ladder: Ladder,
  {
    rung,
    nowMs,
    expiresAtMs,
    notBeforeMs = 0,
  }: { rung: number; nowMs: number; expiresAtMs: number; notBeforeMs?: number },
): NextStep {
  let best: { kind: 'wait'; rung: number; waitMs: number } | undefined
  const last = Math.max(rung, ladder.waitsMs.length)
  for (let candidate = rung; candidate <= last; candidate++) {
    const waitMs = waitOf(ladder, candidate)
    if (nowMs + waitMs > expiresAtMs) continue
    if (nowMs + waitMs >= notBeforeMs) return { kind: 'wait', rung: candidate, waitMs }
    if (best === undefined || waitMs > best.waitMs) best = { kind: 'wait', rung: candidate, waitMs }
  }
  return best ?? { kind: 'expired' }
}

/**
 * Returns the wait of rung `rung` for a delivery whose clock isn't running. The clock isn't running if the
 * delivery was never tried, or if its destination is paused (`state: paused` in the catalog). Such a delivery
 * doesn't expire, so no rung is skipped. After the rungs in `ladder.waitsMs`, each wait is the longest wait
 * of the ladder, and not `thenMs`.
 */
export function nextParkingStep(ladder: Ladder, rung: number): { rung: number; waitMs: number } {
  const waitMs =
    rung < ladder.waitsMs.length ? waitOf(ladder, rung) : Math.max(...ladder.waitsMs, ladder.thenMs)
  return { rung, waitMs }
}

/**
 * Returns the time when the last attempt of a delivery is due, in milliseconds. `firstMs` is the time of the
 * first attempt. The result assumes that each wait takes exactly as long as its rung. If a `Retry-After` asks
 * for a later time, the caller uses this time instead.
 */
export function lastTryAt(ladder: Ladder, firstMs: number): number {
  const expiresAtMs = clockEnd(ladder, firstMs)
  let atMs = firstMs
  let rung = 0
  for (;;) {
    const step = nextStep(ladder, { rung, nowMs: atMs, expiresAtMs })
    if (step.kind === 'expired') return atMs
    atMs += step.waitMs
    rung = step.rung + 1
  }
}
