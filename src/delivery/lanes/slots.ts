import { Fifo } from '../../async/fifo.ts'
import type { Lane } from './lane-queue.ts'

/** A destination whose requests take longer than this on average, in milliseconds, is slow. */
const slowMs = 1_000
/** The weight of the last request in the average. */
const lastWeight = 1 / 4
/** Slow destinations together take at most this part of all requests in flight. */
const slowShare = 7 / 8

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
  /** These queues may also have lanes that no longer wait. */
  readonly #blocked = new Fifo<Lane<D>>()
  readonly #slowBlocked = new Fifo<Lane<D>>()

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
    return lane.inFlight < this.#most - this.#taken && (!isSlow(lane) || this.#slow < this.#mostSlow)
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

  /** Notes how long a request of a lane took, before it is given back. */
  note(lane: Lane<D>, tookMs: number): void {
    const wasSlow = isSlow(lane)
    lane.tookMs = lane.tookMs === 0 ? tookMs : lane.tookMs + (tookMs - lane.tookMs) * lastWeight
    if (isSlow(lane) !== wasSlow) this.#slow += wasSlow ? -lane.inFlight : lane.inFlight
  }

  /** Lets a lane wait until a request ends. */
  block(lane: Lane<D>): void {
    lane.place = 'blocked'
    if (lane.isInBlocked) return
    lane.isInBlocked = true
    if (isSlow(lane)) this.#slowBlocked.push(lane)
    else this.#blocked.push(lane)
  }

  /** Call this when a request has ended. Returns the lane that has waited for the longest time, if any. */
  unblock(): Lane<D> | undefined {
    return firstOf(this.#blocked)
  }

  /** The same for slow lanes. */
  unblockSlow(): Lane<D> | undefined {
    return this.#slow < this.#mostSlow ? firstOf(this.#slowBlocked) : undefined
  }
}

function isSlow({ tookMs }: { readonly tookMs: number }): boolean {
  return tookMs > slowMs
}

/** Removes the first lane that still waits. */
function firstOf<D extends { readonly bytes: number }>(blocked: Fifo<Lane<D>>): Lane<D> | undefined {
  for (let lane = blocked.shift(); lane !== undefined; lane = blocked.shift()) {
    lane.isInBlocked = false
    if (lane.place !== 'blocked') continue
    lane.place = 'nowhere'
    return lane
  }
  return undefined
}
