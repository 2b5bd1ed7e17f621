/** What a round has shown: how many requests were in flight on average, and how many were answered. */
export type Measured = {
  readonly ms: number
  readonly inFlight: number
  /** Requests that the server answered: in all, and for each millisecond. */
  readonly answered: number
  readonly perMs: number
}

/** The shortest round, in milliseconds. Shorter rounds would show only noise. */
const leastMs = 100

/**
 * Measures a hook in rounds. A round is over when all requests that it began with have ended, so it lasts as
 * long as the slowest of them. If a hook answers some requests in 5 ms and others in 2 s, a shorter time
 * would show only the quick ones.
 *
 * The requests that a round began with are those in flight when the first request after its start ends.
 * They include the requests that were started at once, because the limit had just been raised.
 */
export class Round {
  readonly #first: number
  #number: number
  #startMs = 0
  #changedMs = 0
  /** Requests in flight × milliseconds. */
  #area = 0
  #inFlight = 0
  /** The requests in flight that this round waits for, and those that were started after them. */
  #members = 0
  #later = 0
  #isClosed = false
  #answered = 0

  /** `number`: the number that the requests of this round get. Later requests get higher numbers. */
  constructor(number: number) {
    this.#first = number
    this.#number = number
  }

  /** A number that no request has got so far. */
  get nextNumber(): number {
    return this.#number + 2
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** Counts a request that starts. Pass the returned number to `ended`. */
  begun(nowMs: number): number {
    if (this.#inFlight === 0 && this.#answered === 0) this.#restart(nowMs)
    this.#advance(nowMs)
    this.#inFlight++
    if (this.#isClosed) {
      this.#later++
      return this.#number + 1
    }
    this.#members++
    return this.#number
  }

  /** Returns false if the request began before `Round` was made, and so doesn't count. */
  ended(number: number, isAnswered: boolean, nowMs: number): boolean {
    if (number < this.#first) return false
    this.#advance(nowMs)
    this.#inFlight--
    if (number > this.#number) this.#later--
    else this.#members--
    if (isAnswered) this.#answered++
    // Requests that are started in the same millisecond as the round belong to it.
    if (nowMs > this.#startMs + 1) this.#isClosed = true
    return true
  }

  /** If the round is over, begins a new one and returns what the old one has shown. */
  next(nowMs: number): Measured | undefined {
    const durationMs = nowMs - this.#startMs
    if (this.#members > 0 || durationMs < leastMs) return undefined
    const answered = this.#answered
    const inFlight = this.#area / durationMs
    this.#restart(nowMs)
    return { ms: durationMs, inFlight, answered, perMs: answered / durationMs }
  }

  #restart(nowMs: number): void {
    this.#number++
    this.#startMs = nowMs
    this.#changedMs = nowMs
    this.#area = 0
    this.#members = this.#later
    this.#later = 0
    this.#isClosed = false
    this.#answered = 0
  }

  #advance(nowMs: number): void {
    this.#area += this.#inFlight * (nowMs - this.#changedMs)
    this.#changedMs = nowMs
  }
}
