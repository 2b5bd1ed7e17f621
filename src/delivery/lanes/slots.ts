import { Fifo } from '../../async/fifo.ts'
import type { Lane } from './lane-queue.ts'

/** A destination whose requests take longer than this on average, in milliseconds, is slow. */
const slowMs = 1_000
/** The weight of the last request in the average. */
const lastWeight = 1 / 4
/** Slow destinations together take at most this part of all requests in flight. */
const slowShare = 7 / 8
/** Of how many destinations without a lane it is remembered that they were slow. */
const mostRemembered = 16_384

/**
 * The requests in flight of all lanes, and the lanes that wait until some request ends.
 *
 * A lane may have as many as are still free. This leaves nothing once there are more slow destinations than
 * requests in flight: each has one, and all others would wait until one of these ends. So slow destinations
 * together leave an eighth to others.
 */
export class Slots<D extends { readonly bytes: number }> {
  readonly #most: number
  readonly #mostSlow: number
  #taken = 0
  /** How many of them slow lanes have. */
  #slow = 0
  /** The lanes that wait because they have their share. Some of them may no longer wait. */
  readonly #blocked = new Fifo<Lane<D>>()
  /** The same for lanes that wait because slow lanes have all that they may have. */
  readonly #slowBlocked = new Fifo<Lane<D>>()
  /** How long the last requests of slow lanes took that were dropped since, by their keys. */
  readonly #remembered = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
    this.#mostSlow = Math.ceil(most * slowShare)
  }

  get taken(): number {
    return this.#taken
  }

  get areTaken(): boolean {
    return this.#taken >= this.#most
  }

  /** Returns true if a lane may start a request. */
  mayTake(lane: Lane<D>): boolean {
    return lane.inFlight < this.#most - this.#taken && !this.#isBarred(lane)
  }

  #isBarred(lane: Lane<D>): boolean {
    return isSlow(lane) && this.#slow >= this.#mostSlow
  }

  take(lane: Lane<D>): void {
    lane.inFlight++
    this.#taken++
    if (isSlow(lane)) this.#slow++
  }

  giveBack(lane: Lane<D>): void {
    if (isSlow(lane)) this.#slow--
    lane.inFlight--
    this.#taken--
  }

  /**
   * Notes how long a request of a lane took, before it is given back. Returns true if this was so short that
   * the lane may go on before others.
   */
  note(lane: Lane<D>, tookMs: number): boolean {
    const wasSlow = isSlow(lane)
    lane.tookMs = lane.tookMs === 0 ? tookMs : lane.tookMs + (tookMs - lane.tookMs) * lastWeight
    if (isSlow(lane) !== wasSlow) this.#slow += wasSlow ? -lane.inFlight : lane.inFlight
    return tookMs <= slowMs
  }

  /**
   * Remembers a slow lane that is dropped. Otherwise many slow destinations with few messages would take all
   * requests each time.
   */
  dropped({ key, tookMs }: Lane<D>): void {
    if (tookMs <= slowMs) return
    this.#remembered.set(key, tookMs)
    const [oldest] = this.#remembered.keys()
    if (this.#remembered.size > mostRemembered && oldest !== undefined) this.#remembered.delete(oldest)
  }

  /** Call this with each new lane. */
  made(lane: Lane<D>): void {
    lane.tookMs = this.#remembered.get(lane.key) ?? 0
    this.#remembered.delete(lane.key)
  }

  /** Lets a lane wait until a request ends. */
  block(lane: Lane<D>): void {
    lane.place = 'blocked'
    if (this.#isBarred(lane)) {
      if (!lane.isInSlowBlocked) this.#slowBlocked.push(lane)
      lane.isInSlowBlocked = true
    } else {
      if (!lane.isInBlocked) this.#blocked.push(lane)
      lane.isInBlocked = true
    }
  }

  /** Call this when a request has ended. Returns the lane that has waited for the longest time, if any. */
  unblock(): Lane<D> | undefined {
    for (let lane = this.#blocked.shift(); lane !== undefined; lane = this.#blocked.shift()) {
      lane.isInBlocked = false
      if (isToGoOn(lane)) return lane
    }
    return undefined
  }

  /**
   * Returns the slow lane that has waited for the longest time, if slow lanes may have one more request. Call
   * this until all that may start have started: one that was returned may have to wait for something else.
   */
  unblockSlow(): Lane<D> | undefined {
    while (this.#slow < this.#mostSlow) {
      const lane = this.#slowBlocked.shift()
      if (lane === undefined) return undefined
      lane.isInSlowBlocked = false
      if (isToGoOn(lane)) return lane
    }
    return undefined
  }
}

function isSlow({ tookMs }: { readonly tookMs: number }): boolean {
  return tookMs > slowMs
}

/**
 * Ends the wait of a lane. Returns false if it doesn't wait, or what it had to start has left it meanwhile.
 */
function isToGoOn<D extends { readonly bytes: number }>(lane: Lane<D>): boolean {
  if (lane.place !== 'blocked') return false
  lane.place = 'nowhere'
  return lane.length > 0
}
