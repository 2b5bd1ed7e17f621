import { performance } from 'node:perf_hooks'
import process from 'node:process'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'

/** A rest is never longer than this many times the longest piece, because a busy machine stops pieces too. */
const mostPieces = 2
/** How much of the time of this thread was used is measured anew after this time, in milliseconds. */
const windowMs = 200
/** What was measured over a longer time, in milliseconds, says little about the present. */
const longestWindowMs = 1_000
/** By this factor, the share grows at most from one window to the next. It falls at once. */
const growth = 1.3
/** By this factor, the share falls below what is free, so that what comes meanwhile finds the loop idle. */
const caution = 2

/** What was used of the time of this thread since it began, in milliseconds. */
type UsedTime = {
  /** The time in which the event loop had something to do. */
  readonly activeMs: number
  /** The CPU time. In the rest of `activeMs`, other programs had the processor. */
  readonly cpuMs: number
}

type PaceOptions = {
  /** Of the time, from 0 to 1. */
  readonly share: number
  /** The share while the thread and its processor have nothing else to do. `undefined`: `share`. */
  readonly idleShare?: number
  /** The usual length of a piece, in milliseconds. */
  readonly pieceMs: number
  readonly used?: () => UsedTime
}

/**
 * Bounds the share of its time that a process spends on some works together. A work is done in pieces, and
 * rests after each one. So it takes longer, and leaves the processor to what can't wait. A work of one piece
 * never rests.
 *
 * The share is larger while nothing else needs the time: neither this thread, nor another program that wants
 * the same processor.
 */
export class Pace {
  readonly #least: number
  readonly #most: number
  readonly #pieceMs: number
  readonly #used: () => UsedTime
  #share: number
  /** What the works still have to rest, in milliseconds. */
  #owedMs = 0
  /** The beginning of the window, and the time that the works have taken since. */
  #since: UsedTime & { readonly atMs: number }
  #tookMs = 0

  constructor({ share, idleShare = share, pieceMs, used = usedByThisThread }: PaceOptions) {
    this.#least = share
    this.#most = idleShare
    this.#pieceMs = pieceMs
    this.#used = used
    this.#share = share
    this.#since = { atMs: performance.now(), ...used() }
  }

  /** Waits until the next piece may begin. `tookMs`: the length of the last one, in milliseconds. */
  async rest(tookMs: number): Promise<void> {
    this.#tookMs += tookMs
    this.#measure()
    this.#owedMs += Math.min(tookMs, mostPieces * this.#pieceMs) * (1 / this.#share - 1)
    // Timers count whole milliseconds, and are late rather than early.
    if (this.#owedMs < 1) {
      await nextTurn()
      return
    }
    const startedMs = performance.now()
    await delay(this.#owedMs)
    this.#owedMs = Math.max(0, this.#owedMs - (performance.now() - startedMs))
  }

  #measure(): void {
    if (this.#least === this.#most) return
    const nowMs = performance.now()
    const { atMs, ...before } = this.#since
    if (nowMs - atMs < windowMs) return
    const now = this.#used()
    const window = {
      windowMs: nowMs - atMs,
      activeMs: now.activeMs - before.activeMs,
      cpuMs: now.cpuMs - before.cpuMs,
      tookMs: this.#tookMs,
    }
    const free = shareOf(window, { least: this.#least, most: this.#most })
    this.#share = nowMs - atMs > longestWindowMs ? this.#least : Math.min(free, this.#share * growth)
    this.#since = { atMs: nowMs, ...now }
    this.#tookMs = 0
  }
}

/**
 * Returns the share of a work, from what was used in a window. `tookMs`: the time that the work took itself,
 * with what other programs took meanwhile.
 */
export function shareOf(
  window: UsedTime & { readonly windowMs: number; readonly tookMs: number },
  { least, most }: { readonly least: number; readonly most: number },
): number {
  const { activeMs, cpuMs, tookMs } = window
  const otherMs = Math.max(0, activeMs - tookMs)
  const stolenMs = Math.max(0, activeMs - cpuMs)
  const busy = (otherMs + stolenMs) / window.windowMs
  return Math.min(most, Math.max(least, 1 - caution * busy))
}

function usedByThisThread(): UsedTime {
  const { user, system } = process.threadCpuUsage()
  return { activeMs: performance.eventLoopUtilization().active, cpuMs: (user + system) / 1_000 }
}
