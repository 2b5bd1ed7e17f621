import { type Rate, TokenBucket } from '../pacing/token-bucket.ts'
import { Fifo } from '../queues/fifo.ts'
import { Lane, type LaneClass } from './lane.ts'

/**
 * One lane a destination, so that none can hurt another. Lanes that have work take turns; a step costs the
 * same whether there are ten lanes or ten thousand.
 *
 * Two things are shared: the buffer of records and the requests in flight. Of each a lane may hold as much as
 * is free (the dynamic threshold of Choudhury and Hahne, IEEE/ACM ToN 1998): one busy lane gets half, n busy
 * lanes 1/(n+1) each, and there is always room for one that has just woken up.
 *
 * A lane that is longer than its share while its messages are new, and that starts as many as it may, is
 * flooded or slow: after `patienceMs` what it has no room for moves on, to `overflow`. While its messages are
 * late already, we are catching up after an outage of our own: then fetching waits for the lane
 * (`onCongested`), and nothing moves on before `waitMs`. A lane that could start more, and waits for its
 * turn, is not to blame: the whole worker has all it can do, and fetching waits since the buffer is full.
 */

/** One delivery, as its lane sees it. */
export type LaneItem<D> = {
  readonly laneKey: string
  /** Most deliveries of this lane in flight. */
  readonly laneCap: number
  readonly laneClass: LaneClass
  /** Most attempts a second of this lane, in this process. */
  readonly laneRate: Rate | undefined
  /** It was late before it reached us. */
  readonly isLate: boolean
  /** When it first came to its lane, on the clock of `performance.now()`; 0 before. Set by the lanes. */
  queuedAtMs: number
  /** Where it waits, or was started from. Set by the lanes. */
  lane: Lane<D> | undefined
  /** True when its record isn't ours to deliver any more: it is handed to `letGo`. */
  readonly isAbandoned: boolean
}

export type Lanes<D extends LaneItem<D>> = {
  offer(delivery: D): void
  /** A delivery that was started is over: its place in the lane is free. */
  finished(delivery: D): void
  /** A delivery that was started goes back to wait in its lane, which starts nothing more for `ms`. */
  postpone(delivery: D, ms: number): void
  /**
   * No further starts until `open`; what is in flight goes on. Time that passes meanwhile is nobody's
   * waiting.
   */
  shut(): void
  open(): void
  /** Hands what waits and isn't ours any more to `letGo`. */
  letGoAbandoned(): void
  /** Takes out of the queues, and gives back, what is to go. */
  takeQueued(isToGo: (delivery: D) => boolean): D[]
  readonly inFlight: number
  readonly queued: number
  /** Lanes that are kept: those with something queued or in flight, and for a while those that had. */
  readonly count: number
  stop(): void
}

export type LanesOptions<D> = {
  /** Most deliveries in flight over all lanes. */
  maxInFlight: number
  /** How long a lane may be longer than its share before it sheds new messages, in milliseconds. */
  patienceMs: number
  /** How long any delivery may wait in its lane, in milliseconds. */
  waitMs: number
  /**
   * How long a lane is kept that has nothing to do, in milliseconds; it may be kept twice as long. To make
   * one for each message of a destination that gets few would cost more than to keep it.
   */
  idleMs?: number
  /** Asked before each start; false: nothing is started until `open`, or until it is asked again. */
  mayStart?: (() => boolean) | undefined
  /** How many more records may be held. */
  freeRecords: () => number
  start: (delivery: D) => void
  overflow: (delivery: D) => void
  letGo: (delivery: D) => void
  onCongested: (isCongested: boolean) => void
}

export function createLanes<D extends LaneItem<D>>(options: LanesOptions<D>): Lanes<D> {
  return new FairLanes(options)
}

class FairLanes<D extends LaneItem<D>> implements Lanes<D> {
  readonly #options: LanesOptions<D>
  readonly #lanes = new Map<string, Lane<D>>()
  /** Lanes that may start something, in turn. */
  readonly #line = new Fifo<Lane<D>>()
  /** Lanes that hold their share of the requests in flight, until another lane gives some back. */
  readonly #blocked = new Fifo<Lane<D>>()
  readonly #congested = new Set<Lane<D>>()
  /** All lanes in which something waits, and some in which something did. */
  readonly #waiting = new Set<Lane<D>>()
  readonly #sweeps: readonly NodeJS.Timeout[]
  #inFlight = 0
  #queued = 0
  #isShut = false
  #openedMs = 0
  #isPumping = false

  constructor(options: LanesOptions<D>) {
    this.#options = options
    const { waitMs, idleMs = 30_000 } = options
    this.#sweeps = [
      setInterval(() => this.#moveOnWhatWaits(), Math.min(250, waitMs)),
      setInterval(() => this.#letGoIdle(), idleMs),
    ]
    for (const sweep of this.#sweeps) sweep.unref()
  }

  get inFlight(): number {
    return this.#inFlight
  }

  get queued(): number {
    return this.#queued
  }

  get count(): number {
    return this.#lanes.size
  }

  offer(delivery: D): void {
    const lane = this.#laneOf(delivery)
    if (!this.#hasRoom(lane, delivery)) {
      this.#options.overflow(delivery)
      return
    }
    this.#push(lane, delivery)
    this.#joinLine(lane)
    this.#pump()
    if (lane.length > 0) this.#waiting.add(lane)
  }

  finished(delivery: D): void {
    this.#giveBack(this.#startedFrom(delivery))
  }

  postpone(delivery: D, ms: number): void {
    const lane = this.#startedFrom(delivery)
    this.#push(lane, delivery)
    this.#waiting.add(lane)
    if (lane.place === 'nowhere') this.#sleep(lane, ms)
    this.#giveBack(lane)
  }

  shut(): void {
    this.#isShut = true
  }

  open(): void {
    if (this.#isShut) this.#openedMs = performance.now()
    this.#isShut = false
    this.#pump()
  }

  letGoAbandoned(): void {
    for (const lane of this.#lanes.values()) {
      for (const delivery of lane.remove((queued) => queued.isAbandoned)) {
        this.#queued--
        this.#options.letGo(delivery)
      }
      this.#relax(lane)
    }
  }

  takeQueued(isToGo: (delivery: D) => boolean): D[] {
    const taken: D[] = []
    for (const lane of this.#lanes.values()) {
      for (const delivery of lane.remove(isToGo)) {
        this.#queued--
        if (delivery.isAbandoned) this.#options.letGo(delivery)
        else taken.push(delivery)
      }
      this.#relax(lane)
    }
    return taken
  }

  stop(): void {
    for (const sweep of this.#sweeps) clearInterval(sweep)
  }

  #laneOf(delivery: D): Lane<D> {
    let lane = this.#lanes.get(delivery.laneKey)
    if (lane === undefined) {
      lane = new Lane(delivery.laneKey, delivery.laneCap)
      this.#lanes.set(lane.key, lane)
    }
    lane.cap = delivery.laneCap
    this.#setRate(lane, delivery.laneRate)
    return lane
  }

  /** One that took the place of another that was queued has no lane of its own yet, but the same. */
  #startedFrom(delivery: D): Lane<D> {
    const { lane } = delivery
    if (lane === undefined) return this.#laneOf(delivery)
    lane.cap = delivery.laneCap
    return lane
  }

  #push(lane: Lane<D>, delivery: D): void {
    delivery.lane = lane
    if (delivery.queuedAtMs === 0) delivery.queuedAtMs = performance.now()
    lane.push(delivery, delivery.laneClass, delivery.queuedAtMs)
    lane.isLeft = false
    this.#queued++
  }

  /** Whether the lane takes one more; keeps account of how long it has been over its share. */
  #hasRoom(lane: Lane<D>, delivery: D): boolean {
    if (lane.length < this.#share()) return true
    if (lane.isShedding) return false
    if (!this.#isHeldUp(lane)) return true
    const nowMs = performance.now()
    if (lane.overSinceMs === 0) lane.overSinceMs = nowMs
    if (delivery.isLate) {
      this.#setCongested(lane, true)
    } else if (nowMs - lane.overSinceMs > this.#options.patienceMs) {
      this.#startShedding(lane)
      return false
    }
    return true
  }

  /**
   * Its own cap, rate or pause keeps it from starting more, or it holds its share of the requests in flight.
   */
  #isHeldUp(lane: Lane<D>): boolean {
    return lane.inFlight >= lane.cap || lane.place === 'asleep' || lane.place === 'blocked'
  }

  #share(): number {
    return Math.max(1, this.#options.freeRecords())
  }

  #startShedding(lane: Lane<D>): void {
    lane.isShedding = true
    this.#setCongested(lane, false)
  }

  /** Below half its share, a lane is as any other again. */
  #relax(lane: Lane<D>): void {
    if (lane.overSinceMs === 0 || lane.length > this.#share() / 2) return
    lane.overSinceMs = 0
    lane.isShedding = false
    this.#setCongested(lane, false)
  }

  #setCongested(lane: Lane<D>, isCongested: boolean): void {
    const before = this.#congested.size
    if (isCongested) this.#congested.add(lane)
    else this.#congested.delete(lane)
    const after = this.#congested.size
    if ((before === 0) !== (after === 0)) this.#options.onCongested(after > 0)
  }

  #joinLine(lane: Lane<D>): void {
    if (lane.place !== 'nowhere' || lane.length === 0 || lane.inFlight >= lane.cap) return
    lane.place = 'in line'
    this.#line.push(lane)
  }

  #pump(): void {
    // `start` may finish a delivery at once, which pumps again: the loop below takes care of that.
    if (this.#isPumping) return
    this.#isPumping = true
    for (let lane = this.#nextLane(); lane !== undefined; lane = this.#nextLane()) this.#startOne(lane)
    this.#isPumping = false
  }

  #nextLane(): Lane<D> | undefined {
    if (this.#isShut || this.#inFlight >= this.#options.maxInFlight) return undefined
    if (this.#line.length === 0 || this.#options.mayStart?.() === false) return undefined
    return this.#line.shift()
  }

  #startOne(lane: Lane<D>): void {
    lane.place = 'nowhere'
    if (lane.inFlight >= this.#options.maxInFlight - this.#inFlight) {
      lane.place = 'blocked'
      this.#blocked.push(lane)
      return
    }
    const waitMs = lane.length === 0 ? 0 : (lane.bucket?.take(performance.now()) ?? 0)
    if (waitMs > 0) {
      this.#sleep(lane, waitMs)
      return
    }
    const delivery = this.#take(lane)
    if (delivery === undefined) return
    this.#inFlight++
    lane.inFlight++
    this.#joinLine(lane)
    this.#options.start(delivery)
  }

  #take(lane: Lane<D>): D | undefined {
    for (;;) {
      const delivery = lane.shift()
      this.#relax(lane)
      if (delivery === undefined) return undefined
      this.#queued--
      if (!delivery.isAbandoned) return delivery
      this.#options.letGo(delivery)
    }
  }

  #setRate(lane: Lane<D>, rate: Rate | undefined): void {
    if (rate === undefined) lane.bucket = undefined
    else if (lane.bucket === undefined) lane.bucket = new TokenBucket(rate, performance.now())
    else lane.bucket.setRate(rate, performance.now())
  }

  #sleep(lane: Lane<D>, ms: number): void {
    lane.place = 'asleep'
    setTimeout(() => {
      lane.place = 'nowhere'
      this.#joinLine(lane)
      this.#pump()
    }, ms).unref()
  }

  #giveBack(lane: Lane<D>): void {
    lane.inFlight--
    this.#inFlight--
    this.#joinLine(lane)
    // One place has become free: at most one more lane can use it, and this one has asked already.
    this.#unblockOne()
    this.#pump()
  }

  #unblockOne(): void {
    const lane = this.#blocked.shift()
    if (lane === undefined) return
    lane.place = 'nowhere'
    this.#joinLine(lane)
  }

  /** A lane that was idle the last time too, and that nothing has come to since, goes. */
  #letGoIdle(): void {
    for (const lane of this.#lanes.values()) {
      // A bucket that isn't full remembers what was sent: a new lane would begin with a full one.
      if (!lane.isIdle || lane.bucket?.isFull(performance.now()) === false) continue
      if (lane.isLeft) this.#lanes.delete(lane.key)
      else lane.isLeft = true
    }
  }

  #moveOnWhatWaits(): void {
    const latestMs = performance.now() - this.#options.waitMs
    const mayMove = !this.#isShut && this.#openedMs <= latestMs
    for (const lane of this.#waiting) {
      const moved = mayMove && this.#isHeldUp(lane) ? this.#moveOn(lane, latestMs) : 0
      if (moved > 0 && lane.overSinceMs > 0) this.#startShedding(lane)
      this.#relax(lane)
      if (lane.length === 0) this.#waiting.delete(lane)
    }
  }

  #moveOn(lane: Lane<D>, latestMs: number): number {
    let moved = 0
    for (
      let delivery = lane.shiftWaitingSince(latestMs);
      delivery !== undefined;
      delivery = lane.shiftWaitingSince(latestMs)
    ) {
      this.#queued--
      moved++
      if (delivery.isAbandoned) this.#options.letGo(delivery)
      else this.#options.overflow(delivery)
    }
    return moved
  }
}
