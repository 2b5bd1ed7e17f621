/**
 * The retry ladder, which decides how long the next wait is and when to give up. Pure.
 *
 * A rung is a step of the ladder. A tier is a topic that holds the records of every rung with the same wait.
 * The default (`src/config/retry-keys.ts`) is `1m,10m,1h,1h,1h`, and then `10m` as often as it fits into
 * `4h`. With this ladder, the last try is 3 h 51 min after the first.
 */

/** A ladder. Rungs are counted from 0. A rung at or past `waitsMs.length` waits `thenMs`. */
export type Ladder = {
  /** Waits of the first rungs, in milliseconds. Not empty. */
  readonly waitsMs: readonly number[]
  /** The wait of every rung after the first ones, repeated as often as it fits. */
  readonly thenMs: number
  /** Time after the first attempt within which a try may still be due, in milliseconds. */
  readonly limitMs: number
}

export type NextStep = { kind: 'wait'; rung: number; waitMs: number } | { kind: 'expired' }

export function waitOf(ladder: Ladder, rung: number): number {
  return ladder.waitsMs[rung] ?? ladder.thenMs
}

/**
 * Returns the time when a delivery expires. `startedMs` is the time when the delivery's clock started: at its
 * first try, or at its first wait for a turn. Both times are epoch milliseconds.
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

/** Returns the distinct waits, ascending. Each wait has a retry topic. */
export function tiersOf(ladder: Ladder): number[] {
  return [...new Set([...ladder.waitsMs, ladder.thenMs])].sort((a, b) => a - b)
}

/**
 * Returns the next rung, at or after `rung`, for a delivery that goes on waiting at `nowMs`.
 *
 * A rung whose try would be due after `expiresAtMs` is passed over, because later rungs may be shorter. A
 * rung that ends before `notBeforeMs` (a `Retry-After`) is passed over too if a later rung reaches
 * `notBeforeMs`, so that no delivery is woken for nothing. If no rung reaches `notBeforeMs`, the longest rung
 * that fits is taken, and the delivery waits again after it. So a `Retry-After` never costs the last try.
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
 * Returns the next rung of a delivery whose clock isn't running: it was never tried, or its destination is
 * paused (`state: paused` in the catalog). Such a delivery doesn't expire, and its rung always advances. Past
 * the end of the ladder, each rung has the longest wait of the ladder.
 */
export function nextParkingStep(ladder: Ladder, rung: number): { rung: number; waitMs: number } {
  const waitMs =
    rung < ladder.waitsMs.length ? waitOf(ladder, rung) : Math.max(...ladder.waitsMs, ladder.thenMs)
  return { rung, waitMs }
}

/**
 * Returns the time when the last try of a delivery is due, in milliseconds, if its first try is at `firstMs`
 * and every step is on time. A `Retry-After` never delays a delivery beyond this time.
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
