import type { LoadSign } from '../outcomes/load-sign.ts'
import { Failures } from './failures.ts'
import { type Measured, Round } from './round.ts'

// How many requests a hook's server takes at once is learned from what becomes of requests, as TCP learns it
// for a network:
//
// - The limit begins at 10. While it is really used, it doubles with each round of answers (slow start).
//   Above the threshold, it grows by one with each round (additive increase).
// - It stays where it is (`level`) if a higher limit has brought no more answers a second. From time to time,
//   a limit that is half as high again is tried for a round, because the server may have become faster.
// - If requests time out, connections are lost, or the server answers 429 or 503, the limit is halved, and
//   becomes the threshold (multiplicative decrease). Only requests that were started after the last halving
//   count, so there is at most one halving in a round trip. A long latency alone never lowers the limit.
// - If as many requests fail at the lowest limit, and fewer are answered in proportion, the failures don't
//   come from load. So this share of failures is tolerated from then on.
// - If all requests fail, the hook is dead, and nothing is learned about it. When it answers again, the limit
//   begins at a tenth of what it was before, and at 10 at most. It doubles as at the start.
//
// The limit is that of the whole consumer group. This worker uses its share of it.

/**
 * The limit at the start. A breaker needs as many results to open. So a hook that never answers counts as
 * failing after one deadline.
 */
const firstLimit = 10
/**
 * A round is compared with an earlier one if it had this many times as many requests in flight. Then the
 * limit was worth it if the answers a second have grown by at least `leastGain` of that growth.
 */
const comparableGrowth = 1.2
const leastGain = 0.15
const mostGain = 0.6
/**
 * If a round lasted this long, in milliseconds, then the limit first grows by a quarter only. If it doubled,
 * requests to a server with one worker could take twice as long, and so longer than their deadline.
 */
const slowMs = 2_400
const slowTimes = 1.25
/** If the answers a second grow this many times at the same limit, the server has become faster. */
const fasterTimes = 1.5
const probeTimes = 1.5
/**
 * The number of rounds before the first try of a higher limit. It doubles with each try that brought nothing.
 */
const firstProbeRounds = 2
/** The longest time between two tries of a higher limit, in milliseconds. */
const mostProbeMs = 30_000
/** The threshold counts for this time after a halving, in milliseconds. */
const thresholdMs = 60_000
/**
 * A limit counts as used at an answer if at least this share of it was in flight, and in a round on average.
 */
const usedShare = 0.7
const usedShareOfRound = 0.9
/**
 * If this number of requests in a row were overloaded, the hook is dead. So it is if fewer in a row, but all
 * of this time, in milliseconds, were.
 */
const deadResults = 50
const deadSlowResults = 12
const deadMs = 30_000
const tolerantTimes = 5
/**
 * If a hook has answered 429 for this time, in milliseconds, and to this number of requests in a row, it
 * refuses all requests, and fewer at once would not help.
 */
const refusedResults = 10
const refusedMs = 5_000
/** A limit that counts as the lowest. */
const lowestLimit = 1.5

type Phase = 'growing' | 'level' | 'probing'

/** The state before the first of several halvings. */
type Before = { readonly limit: number; readonly threshold: number }

/** The limit on requests in flight to one hook. All times are milliseconds of one monotonic clock. */
export class LearnedLimit {
  readonly #shareOfGroup: () => number
  readonly #ceiling: number
  #round = new Round(1)
  #limit = firstLimit
  #threshold = Number.POSITIVE_INFINITY
  #phase: Phase = 'growing'
  /** The last round, and the round with which later rounds are compared. */
  #last: Measured | undefined
  #reference: Measured | undefined
  /** The first round since the limit last began to grow. */
  #base: Measured | undefined
  readonly #failures = new Failures()
  #halvedMs = Number.NEGATIVE_INFINITY
  #before: Before | undefined
  /** The most requests that were in flight at once in this round, and in the round before. */
  #peak = 0
  #lastPeak = 0
  /** True if the limit was reached since it last changed, and the answers that came while it was used. */
  #wasFull = false
  #answersWhileFull = 0
  /** True if a higher limit has brought more answers a second since the limit began to grow. */
  #isProven = false
  #sinceAnswer = 0
  #answeredMs = 0
  #isDead = false
  #refusesAll = false
  /** The number of rounds from one try of a higher limit to the next, and what is left of them. */
  #probeRounds = firstProbeRounds
  #roundsLeft = 0
  #levelMs = 0

  /**
   * `shareOfGroup` returns the fraction of the group that this worker is, above 0 and up to 1. `ceiling`: the
   * most requests that this worker may have in flight.
   */
  constructor(shareOfGroup: () => number, ceiling: number) {
    this.#shareOfGroup = shareOfGroup
    this.#ceiling = ceiling
  }

  /** The limit of the whole group, without the ceiling. */
  get ofGroup(): number {
    return this.#limit
  }

  /** This worker's part of the limit, without the ceiling. Below 1, there must be pauses between requests. */
  get part(): number {
    return this.#limit * this.#shareOfGroup()
  }

  /** The most requests that this worker may have in flight. */
  get cap(): number {
    return this.#refusesAll ? this.#ceiling : Math.max(1, Math.min(Math.floor(this.part), this.#ceiling))
  }

  /** True if the limit was lowered, and has not been forgotten since. */
  get wasLowered(): boolean {
    return this.#before !== undefined || this.#threshold < Number.POSITIVE_INFINITY
  }

  /** True if the hook has answered nothing for long. */
  get isDead(): boolean {
    return this.#isDead
  }

  /** The requests in flight that count. Those from before a hook came back to life don't. */
  get inFlight(): number {
    return this.#round.inFlight
  }

  /** Counts a request that starts. Pass the returned number to `ended` or `withdrawn`. */
  begun(nowMs: number): number {
    const number = this.#round.begun(nowMs)
    this.#peak = Math.max(this.#peak, this.inFlight)
    if (this.inFlight >= this.cap) this.#wasFull = true
    return number
  }

  ended(number: number, begunMs: number, result: LoadSign, nowMs: number): void {
    const isOverload = result === 'overloaded' || result === 'throttled'
    if (result === 'answered') this.#takeAnswer(nowMs)
    else if (isOverload) this.#takeOverload(result, nowMs)
    const wasUsed = this.#wasFull && this.#isUsed()
    if (!this.#round.ended(number, result === 'answered', nowMs)) return
    if (begunMs > this.#halvedMs && result !== 'nothing') this.#count(isOverload, begunMs, nowMs)
    const measured = this.#round.next(nowMs)
    if (measured !== undefined) this.#endRound(measured, nowMs)
    if (wasUsed && (result === 'answered' || this.#failures.areTolerated)) this.#grow()
  }

  /** Call this instead of `ended` for a request that was never sent, through no fault of the hook. */
  withdrawn(number: number, nowMs: number): void {
    this.#round.ended(number, false, nowMs)
  }

  #isUsed(): boolean {
    const { cap } = this
    if (cap > 1) return this.inFlight >= usedShare * cap
    // A single request always uses a limit of one. So the time without a request counts here.
    return this.#last === undefined || this.#last.inFlight >= usedShare * Math.min(1, this.part)
  }

  #takeAnswer(nowMs: number): void {
    this.#refusesAll = false
    this.#sinceAnswer = 0
    this.#answeredMs = nowMs
    if (!this.#isDead) return
    this.#isDead = false
    this.#startAnew(nowMs)
  }

  #takeOverload(result: 'overloaded' | 'throttled', nowMs: number): void {
    if (this.#sinceAnswer === 0 && this.#answeredMs === 0) this.#answeredMs = nowMs
    this.#sinceAnswer++
    const ms = nowMs - this.#answeredMs
    this.#refusesAll = result === 'throttled' && this.#sinceAnswer >= refusedResults && ms >= refusedMs
    const isSilent = this.#sinceAnswer >= deadSlowResults && ms >= deadMs
    const isDead = this.#refusesAll || isSilent || this.#sinceAnswer >= deadResults
    // If most requests fail at any load, many in a row fail by chance.
    const isChance = this.#failures.areTolerated && this.#sinceAnswer < tolerantTimes * deadResults
    if (this.#isDead || !isDead || isChance) return
    this.#isDead = true
    this.#lower(1, nowMs)
  }

  /** Forgets the requests in flight, and begins to grow again. */
  #startAnew(nowMs: number): void {
    this.#round = new Round(this.#round.nextNumber)
    const before = this.#before ?? { limit: this.#limit, threshold: this.#threshold }
    this.#threshold = before.threshold
    this.#limit = Math.max(1, Math.min(firstLimit, before.limit / firstLimit))
    this.#settle(nowMs)
    this.#phase = 'growing'
    this.#probeRounds = firstProbeRounds
  }

  /** Lets only requests count that are started from now on. */
  #settle(nowMs: number): void {
    this.#halvedMs = nowMs
    this.#failures.forgive()
    this.#last = undefined
    this.#reference = undefined
    this.#base = undefined
    this.#limitChanged()
  }

  #limitChanged(): void {
    this.#wasFull = false
    this.#answersWhileFull = 0
  }

  #count(isOverloaded: boolean, begunMs: number, nowMs: number): void {
    const isLowest = this.#limit <= lowestLimit
    const found = this.#failures.count({ isOverloaded, ms: nowMs - begunMs, cap: this.cap, isLowest }, nowMs)
    if (found === 'too many' && !this.#isDead) this.#halve(nowMs)
    if (found !== 'not from load' || this.#before === undefined) return
    this.#limit = this.#before.limit
    this.#threshold = this.#before.threshold
    this.#before = undefined
    this.#limitChanged()
  }

  #halve(nowMs: number): void {
    const peak = Math.max(this.#peak, this.#lastPeak)
    // If less than half of the limit was in flight, the failures say nothing about the limit.
    if (this.#limit <= 1 || peak < this.cap / 2) return
    this.#lower(Math.max(1, Math.min(this.#limit, peak / this.#shareOfGroup()) / 2), nowMs)
    this.#threshold = this.#limit
    this.#phase = 'growing'
    this.#isProven = false
    this.#settle(nowMs)
  }

  #lower(limit: number, nowMs: number): void {
    this.#before ??= { limit: this.#limit, threshold: this.#threshold }
    this.#limit = limit
    this.#failures.lowered(limit <= lowestLimit, nowMs)
  }

  #grow(): void {
    this.#answersWhileFull++
    if (this.#phase !== 'growing' || this.part >= this.#ceiling || this.#answersWhileFull < this.cap) return
    const isSlow = !this.#isProven && this.#last !== undefined && this.#last.ms > slowMs
    const times = isSlow ? slowTimes : 2
    const limit =
      this.#limit < this.#threshold ? Math.min(this.#limit * times, this.#threshold) : this.#limit + 1
    this.#limit = Math.min(limit, this.#ceiling / this.#shareOfGroup())
    if (this.#before !== undefined && this.#limit >= this.#before.limit) {
      this.#before = undefined
      this.#failures.restored()
    }
    this.#limitChanged()
  }

  #endRound(measured: Measured, nowMs: number): void {
    this.#lastPeak = this.#peak
    this.#peak = this.inFlight
    this.#last = measured
    if (nowMs - this.#halvedMs > thresholdMs) this.#threshold = Number.POSITIVE_INFINITY
    this.#failures.review()
    if (measured.inFlight < usedShareOfRound * Math.min(this.part, this.cap)) return
    switch (this.#phase) {
      case 'growing':
        this.#compare(measured, nowMs)
        break
      case 'level':
        this.#lookUp(measured, nowMs)
        break
      case 'probing':
        this.#endProbe(measured, nowMs)
        break
    }
  }

  /** Stops growing if a higher limit has brought no more answers a second. */
  #compare(measured: Measured, nowMs: number): void {
    const reference = this.#reference
    if (reference === undefined || measured.inFlight < reference.inFlight) {
      this.#reference = measured
      this.#base = measured
    } else if (measured.inFlight >= comparableGrowth * reference.inFlight) {
      if (wasWorthIt(measured, reference) && wasWorthIt(measured, this.#base ?? reference)) {
        this.#reference = measured
        this.#isProven = true
      } else this.#becomeLevel(reference, nowMs)
    }
  }

  /** Stays at the limit of an earlier round. */
  #becomeLevel(reference: Measured, nowMs: number): void {
    this.#phase = 'level'
    this.#limit = Math.max(1, Math.ceil(reference.inFlight) / this.#shareOfGroup())
    this.#reference = reference
    this.#roundsLeft = this.#probeRounds
    this.#levelMs = nowMs
    this.#limitChanged()
  }

  #lookUp(measured: Measured, nowMs: number): void {
    const { perMs = 0 } = this.#reference ?? {}
    this.#roundsLeft--
    if (measured.perMs > fasterTimes * perMs) this.#growAgain(measured)
    else if (this.#roundsLeft <= 0 || nowMs - this.#levelMs > mostProbeMs) this.#probe(measured)
  }

  #growAgain(measured: Measured): void {
    this.#phase = 'growing'
    this.#probeRounds = firstProbeRounds
    this.#reference = measured
    this.#base = measured
  }

  #probe(measured: Measured): void {
    this.#phase = 'probing'
    this.#reference = measured
    this.#limit = Math.max(this.#limit + 1, this.#limit * probeTimes)
    this.#limitChanged()
  }

  #endProbe(measured: Measured, nowMs: number): void {
    const reference = this.#reference ?? measured
    if (wasWorthIt(measured, reference)) {
      this.#isProven = true
      this.#growAgain(measured)
      return
    }
    this.#probeRounds *= 2
    this.#becomeLevel(reference, nowMs)
  }
}

/**
 * Returns true if a higher limit has brought more answers a second. The fewer answers were counted, the more
 * the two rounds may differ by chance, and the more they must differ.
 */
function wasWorthIt(measured: Measured, reference: Measured): boolean {
  const growth = measured.inFlight / reference.inFlight - 1
  const chance = Math.sqrt(1 / Math.max(1, measured.answered) + 1 / Math.max(1, reference.answered))
  const least = Math.min(mostGain * growth, leastGain * growth + chance)
  return measured.perMs / reference.perMs - 1 >= least
}
