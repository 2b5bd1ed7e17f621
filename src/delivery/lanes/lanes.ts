import { type Rate, TokenBucket } from '../../async/token-bucket.ts'
import { Fifo } from '../../async/fifo.ts'
import { SharedBreath } from '../../async/shared-breath.ts'
import { AwakeClock } from './awake-clock.ts'
import { Lane } from './lane-queue.ts'
import type { LaneItem, Lanes, LanesOptions, WaitingLane } from './lanes-ports.ts'
import { Slots } from './slots.ts'

// Each destination has a lane, so that no destination can slow down another. Lanes that have work take turns.
// The time to start a delivery doesn't depend on the number of lanes.
//
// Lanes share two things: the buffer of records and the requests in flight. The share of a lane is as much as
// is still free (the dynamic threshold of Choudhury and Hahne, IEEE/ACM ToN 1998). A single busy lane gets
// half of the whole, and n busy lanes get 1/(n+1) each. So there is always room for a lane that gets its
// first delivery after an idle time.
//
// If a lane holds more waiting deliveries than its share, and only waits for its turn, the whole worker is at
// its limit, and fetching waits because the buffer is full. There are two other cases. In both, the lane must
// not start more deliveries now. If its messages were new when they reached the worker, its destination is
// flooded or slow. After `patienceMs`, further messages of the lane go to `overflow`. If its messages were
// already late, the worker is catching up after an outage of Sluice. In that case, fetching waits for the
// lane (`onCongested`), and a delivery goes to `overflow` only after `waitMs`.
//
// A thousand lanes may fill the buffer although none of them holds more than its share, because each must not
// start the one or two deliveries that it has. Others then wait to be fetched, and the worker has little to
// do. In this case, a delivery goes to `overflow` after `patienceMs` already, and if this goes on, at once if
// its lane can't start it soon.

/** The limits of a lane that they don't hold up are renewed after this number of answers. */
const answersBetween = 8
/** What starts within this time, in milliseconds, starts soon. */
const soonMs = 250
/** For how long lanes that have slept go on in one turn of the event loop, in milliseconds. */
const wakingMs = 3

export function createLanes<D extends LaneItem<D>>(options: LanesOptions<D>): Lanes<D> {
  return new FairLanes(options)
}

class FairLanes<D extends LaneItem<D>> implements Lanes<D> {
  readonly #options: LanesOptions<D>
  readonly #lanes = new Map<string, Lane<D>>()
  /** Lanes that may start a delivery, in the order of their turns. */
  readonly #line = new Fifo<Lane<D>>()
  /** The requests in flight. */
  readonly #slots: Slots<D>
  readonly #congested = new Set<Lane<D>>()
  /** All lanes with a waiting delivery. Until the next sweep, lanes without one may be in this set too. */
  readonly #waiting = new Set<Lane<D>>()
  readonly #sweeps: readonly NodeJS.Timeout[]
  readonly #waking = new SharedBreath(wakingMs)
  /** The clock for the time that deliveries wait, and for the time that a lane holds more than its share. */
  readonly #clock = new AwakeClock()
  /**
   * For how long the buffer has been full of late although more deliveries could start, in milliseconds. It
   * falls as fast as it rises, because the buffer is free for a moment whenever it is filled again.
   */
  #obstructedMs = 0
  #lookedAtMs = this.#clock.nowMs
  #queued = 0
  #isShut = false
  #openedMs = 0
  #isPumping = false

  constructor(options: LanesOptions<D>) {
    this.#options = options
    this.#slots = new Slots(options.maxInFlight)
    const { waitMs, idleMs = 30_000 } = options
    this.#sweeps = [
      setInterval(() => this.#lookAtAll(), Math.min(250, waitMs)),
      setInterval(() => this.#letGoIdle(), idleMs),
    ]
    for (const sweep of this.#sweeps) sweep.unref()
  }

  get inFlight(): number {
    return this.#slots.taken
  }

  get queued(): number {
    return this.#queued
  }

  get count(): number {
    return this.#lanes.size
  }

  *waiting(leastMs: number): Generator<WaitingLane<D>> {
    const { nowMs } = this.#clock
    for (const lane of this.#waiting) {
      const { oldest } = lane
      if (oldest === undefined || nowMs - oldest.sinceMs < leastMs) continue
      const { delivery, sinceMs } = oldest
      yield { laneKey: lane.key, count: lane.length, oldest: delivery, waitedMs: nowMs - sinceMs }
    }
  }

  queuedIn(laneKey: string): number {
    return this.#lanes.get(laneKey)?.length ?? 0
  }

  sizesOf(laneKey: string): Lane<D> | undefined {
    return this.#lanes.get(laneKey)
  }

  perBatch(laneKey: string): number | undefined {
    return this.#lanes.get(laneKey)?.perBatch
  }

  *rated(): Generator<string> {
    for (const lane of this.#waiting) if (lane.bucket !== undefined && lane.length > 0) yield lane.key
  }

  isSpare(laneKey: string): boolean {
    const lane = this.#lanes.get(laneKey)
    return lane === undefined || (lane.length === 0 && lane.bucket?.isFull(performance.now()) !== false)
  }

  mayStartWithin(laneKey: string, ms: number): boolean {
    const lane = this.#lanes.get(laneKey)
    return lane === undefined || !this.#waitsLonger(lane, ms)
  }

  renewLimits(laneKey: string): void {
    const lane = this.#lanes.get(laneKey)
    if (lane !== undefined) this.#renewLimits(lane)
  }

  offer(delivery: D): void {
    const lane = this.#laneOf(delivery)
    if (!delivery.isFromQueue && !this.#hasRoom(lane, delivery) && !this.#makesRoom(lane, delivery)) {
      this.#options.overflow(delivery)
      return
    }
    this.#push(lane, delivery)
    if (lane.place === 'gathering' && this.#isGathered(lane, delivery)) this.#endGathering(lane)
    else this.#joinLine(lane)
    this.#pump()
    if (lane.length > 0) this.#waiting.add(lane)
  }

  takeMore(lead: D, fits: (next: D) => boolean): D | undefined {
    const lane = this.#startedFrom(lead)
    for (let next = lane.peek(); next !== undefined; next = lane.peek()) {
      if (!next.isAbandoned && !fits(next)) return undefined
      lane.shift()
      this.#queued--
      this.#relax(lane)
      if (!next.isAbandoned) return next
      this.#options.letGo(next)
    }
    return undefined
  }

  setFed(laneKey: string, isFed: boolean): void {
    const lane = this.#lanes.get(laneKey)
    if (lane !== undefined) lane.isFed = isFed
  }

  finished(delivery: D): void {
    const lane = this.#startedFrom(delivery)
    const isQuick = this.#slots.note(lane, this.#clock.nowMs - delivery.startedAtMs)
    // What is learned from each answer changes the limits. If they don't hold up the lane, a higher limit is
    // of no use to it, and a lower one may come some answers later.
    if (this.#isAtLimit(lane) || ++lane.sinceRenewed >= answersBetween) this.#renewLimits(lane)
    this.#giveBack(lane, isQuick)
  }

  sentNothing(delivery: D): void {
    const lane = this.#startedFrom(delivery)
    lane.bucket?.giveBack(1)
    this.#giveBack(lane)
  }

  postpone(delivery: D, ms: number): void {
    const lane = this.#startedFrom(delivery)
    lane.bucket?.giveBack(1)
    this.#push(lane, delivery, 'front')
    this.#waiting.add(lane)
    lane.pausedUntilMs = Math.max(lane.pausedUntilMs, performance.now() + ms)
    this.#giveBack(lane)
  }

  endPause(laneKey: string): void {
    const lane = this.#lanes.get(laneKey)
    if (lane !== undefined) lane.pausedUntilMs = 0
  }

  shut(): void {
    this.#isShut = true
  }

  open(): void {
    if (this.#isShut) this.#openedMs = this.#clock.nowMs
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
    for (const lane of this.#lanes.values()) clearTimeout(lane.gathering)
    for (const sweep of this.#sweeps) clearInterval(sweep)
  }

  #laneOf(delivery: D): Lane<D> {
    let lane = this.#lanes.get(delivery.laneKey)
    if (lane === undefined) {
      lane = new Lane(delivery.laneKey, delivery.laneCap)
      this.#slots.made(lane)
      this.#lanes.set(lane.key, lane)
    }
    lane.cap = delivery.laneCap
    lane.setBatch(delivery.laneBatch)
    this.#setRate(lane, delivery.laneRate)
    return lane
  }

  /** Returns the lane from which a delivery was started, or its destination's lane if it never was in one. */
  #startedFrom(delivery: D): Lane<D> {
    return delivery.lane ?? this.#laneOf(delivery)
  }

  #push(lane: Lane<D>, delivery: D, place: 'front' | 'end' = 'end'): void {
    delivery.lane = lane
    if (delivery.queuedAtMs === 0) delivery.queuedAtMs = this.#clock.nowMs
    if (place === 'front') lane.putBack(delivery, delivery.laneClass, delivery.queuedAtMs)
    else lane.push(delivery, delivery.laneClass, delivery.queuedAtMs)
    lane.isLeft = false
    this.#queued++
  }

  /**
   * Returns true if the lane accepts one more delivery. If the lane is over its share and must not start more
   * deliveries now, sets its `overSinceMs`.
   */
  #hasRoom(lane: Lane<D>, delivery: D): boolean {
    if (this.#isObstructedFor(delivery) && this.#waitsLonger(lane, soonMs)) return false
    if (lane.length < this.#share()) return true
    if (lane.isShedding) return false
    if (!this.#isHeldUp(lane)) return true
    const { nowMs } = this.#clock
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
   * Makes room in a full lane for a delivery that has no other place to wait, by passing the oldest new
   * message of the lane to `overflow`. Returns false if the delivery has another place to wait, or if the
   * lane has no new message.
   */
  #makesRoom(lane: Lane<D>, delivery: D): boolean {
    if (this.#options.mayOverflow?.(delivery) !== false) return false
    const fresh = lane.shiftFresh()
    if (fresh === undefined) return false
    this.#queued--
    this.#leave(fresh)
    return true
  }

  #leave(delivery: D): void {
    if (delivery.isAbandoned) this.#options.letGo(delivery)
    else this.#options.overflow(delivery)
  }

  /**
   * Returns true if the lane must not start more deliveries now. It has as many deliveries in flight as its
   * `cap` allows, or it waits because of its rate limit or a postponed delivery (`asleep`), or it holds its
   * whole share of the requests in flight (`blocked`).
   */
  #isHeldUp(lane: Lane<D>): boolean {
    return lane.inFlight >= lane.cap || lane.place === 'asleep' || lane.place === 'blocked'
  }

  /** Returns true if the lane could start a delivery, or start it sooner, with other limits. */
  #isAtLimit(lane: Lane<D>): boolean {
    return lane.inFlight >= lane.cap || lane.bucket !== undefined
  }

  #share(): number {
    return Math.max(1, this.#options.freeRecords())
  }

  #startShedding(lane: Lane<D>): void {
    lane.isShedding = true
    this.#setCongested(lane, false)
  }

  /** If a lane holds at most half of its share, ends its shedding, and lets fetching go on. */
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
    // `start` may finish a delivery at once, and this method is then called again from within the loop below.
    if (this.#isPumping) return
    this.#isPumping = true
    do {
      for (let lane = this.#nextLane(); lane !== undefined; lane = this.#nextLane()) this.#startOne(lane)
    } while (this.#line.length === 0 && this.#goOnWithSlow())
    this.#isPumping = false
  }

  /** Lets a slow lane go on that waits for others, if there is a request for it. */
  #goOnWithSlow(): boolean {
    const slow = this.#slots.unblockSlow()
    if (slow !== undefined) this.#joinLine(slow)
    return slow !== undefined
  }

  #nextLane(): Lane<D> | undefined {
    if (this.#isShut || this.#slots.areTaken) return undefined
    if (this.#line.length === 0 || this.#options.mayStart?.() === false) return undefined
    return this.#line.shift()
  }

  #startOne(lane: Lane<D>): void {
    lane.place = 'nowhere'
    // The limit may have been lowered since the lane joined the line.
    if (lane.inFlight >= lane.cap) return
    if (!this.#slots.mayTake(lane)) {
      this.#slots.block(lane)
      return
    }
    const gatherMs = lane.batch === undefined ? 0 : this.#gatherMs(lane)
    if (gatherMs > 0) {
      this.#gather(lane, gatherMs)
      return
    }
    const waitMs = lane.length === 0 ? 0 : lane.waitMs()
    if (waitMs > 0) {
      this.#sleep(lane, waitMs)
      return
    }
    const delivery = this.#take(lane)
    if (delivery === undefined) return
    this.#slots.take(lane)
    delivery.startedAtMs = this.#clock.nowMs
    this.#joinLine(lane)
    this.#options.start(delivery)
    const few = lane.batch === undefined ? lane.cap / 2 : lane.cap * lane.batch.maxMessages
    if (lane.isFed && lane.length <= few) this.#options.onLow?.(lane.key)
  }

  /** Returns how long a lane still has to gather its next batch, in milliseconds; 0 if it may leave now. */
  #gatherMs(lane: Lane<D>): number {
    const { batch, oldest } = lane
    if (batch === undefined || oldest === undefined) return 0
    return this.#isGathered(lane, oldest.delivery) ? 0 : oldest.sinceMs + batch.maxWaitMs - this.#clock.nowMs
  }

  /**
   * Returns true if a lane needn't wait for more deliveries to fill a batch. What has waited in a queue
   * outside of this process only waits for those that come from there with it.
   */
  #isGathered(lane: Lane<D>, { isFromQueue }: D): boolean {
    const { batch, key } = lane
    if (batch === undefined || lane.isFull(batch) || lane.length >= this.#share()) return true
    return isFromQueue && this.#options.areMoreComing?.(key) !== true
  }

  #gather(lane: Lane<D>, ms: number): void {
    lane.place = 'gathering'
    lane.gathering = setTimeout(() => {
      this.#endGathering(lane)
      this.#pump()
    }, Math.ceil(ms)).unref()
  }

  #endGathering(lane: Lane<D>): void {
    clearTimeout(lane.gathering)
    lane.gathering = undefined
    if (lane.place === 'gathering') lane.place = 'nowhere'
    this.#joinLine(lane)
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
    setTimeout(() => this.#wake(lane), ms).unref()
  }

  /**
   * Lets a lane go on that has slept. If the process was busy for a while, hundreds of lanes are due
   * together. They start a few at a time, so that others go on between them.
   */
  #wake(lane: Lane<D>): void {
    const goOn = (): void => {
      lane.place = 'nowhere'
      this.#joinLine(lane)
      this.#pump()
    }
    const turn = this.#waking.take()
    if (turn === undefined) goOn()
    else void turn.then(goOn)
  }

  /**
   * Frees a place of a lane. `isQuick`: the lane goes on before slow ones that wait. So one that is slow by
   * its average, and has become fast, has soon shown this.
   */
  #giveBack(lane: Lane<D>, isQuick = false): void {
    this.#slots.giveBack(lane)
    // `lane` itself may be able to start even if no other lane can, because it now holds one request less.
    if (lane.place === 'blocked') lane.place = 'nowhere'
    const other = this.#slots.unblock()
    if (other !== undefined) this.#joinLine(other)
    if (!isQuick) this.#goOnWithSlow()
    this.#joinLine(lane)
    this.#pump()
  }

  /** Drops lanes that have been idle since the last sweep. */
  #letGoIdle(): void {
    for (const lane of this.#lanes.values()) {
      // While the bucket isn't full, the lane is kept, because its latest attempts still count for the rate
      // limit. A new lane would start with a full bucket.
      if (!lane.isIdle || lane.bucket?.isFull(performance.now()) === false) continue
      if (!lane.isLeft) lane.isLeft = true
      else if (this.#lanes.delete(lane.key)) this.#slots.dropped(lane)
    }
  }

  /**
   * Gives each lane with a waiting delivery its present limits, and passes on the deliveries that waited too
   * long.
   */
  #lookAtAll(): void {
    const { patienceMs, waitMs } = this.#options
    const { nowMs } = this.#clock
    this.#noteObstruction(nowMs)
    for (const lane of this.#waiting) {
      this.#renewLimits(lane)
      if (lane.place === 'gathering' && this.#gatherMs(lane) <= 0) this.#endGathering(lane)
      const mostMs = this.#isObstructedFor(lane.oldest?.delivery) ? Math.min(patienceMs, waitMs) : waitMs
      const mayMove = !this.#isShut && this.#openedMs <= nowMs - mostMs && this.#isHeldUp(lane)
      const moved = mayMove ? this.#moveOn(lane, nowMs - mostMs) : 0
      if (moved > 0 && lane.overSinceMs > 0) this.#startShedding(lane)
      this.#relax(lane)
      if (lane.length === 0) this.#waiting.delete(lane)
    }
    this.#pump()
  }

  #noteObstruction(nowMs: number): void {
    const { isBufferFull, patienceMs, waitMs } = this.#options
    const passedMs = nowMs - this.#lookedAtMs
    this.#lookedAtMs = nowMs
    const isObstructed =
      isBufferFull?.() === true && this.#line.length === 0 && !this.#slots.areTaken && !this.#isShut
    const most = patienceMs + waitMs
    this.#obstructedMs = Math.min(
      most,
      Math.max(0, this.#obstructedMs + (isObstructed ? passedMs : -passedMs)),
    )
  }

  /**
   * Returns true if what waits in lanes has kept others from being fetched for too long. While the worker is
   * catching up after an outage, this takes as long as until a delivery goes to `overflow` in any case.
   */
  #isObstructedFor(delivery: D | undefined): boolean {
    const { patienceMs, waitMs, keepsOrder } = this.#options
    if (this.#obstructedMs <= patienceMs || keepsOrder?.() !== true) return false
    return delivery?.isLate !== true || this.#obstructedMs > waitMs
  }

  /** Returns true if a further delivery of a lane probably waits for longer than `ms` milliseconds. */
  #waitsLonger(lane: Lane<D>, ms: number): boolean {
    if (lane.closedForMs(performance.now()) > ms) return true
    return lane.tookMs > ms && (lane.inFlight >= lane.cap || !this.#slots.mayTake(lane))
  }

  /**
   * Gives a lane its present limits. An edit of the catalog, or a new assignment of partitions, changes the
   * limits even if the lane gets no new delivery.
   */
  #renewLimits(lane: Lane<D>): void {
    lane.sinceRenewed = 0
    const limits = this.#options.limitsOf?.(lane.key)
    if (limits === undefined) return
    lane.cap = limits.cap
    lane.setBatch(limits.batch)
    this.#setRate(lane, limits.rate)
    this.#joinLine(lane)
  }

  /**
   * Passes the deliveries that have waited too long to `overflow`. But if the lane holds no more than its
   * share, deliveries that have no other place to wait stay in it.
   */
  #moveOn(lane: Lane<D>, latestMs: number): number {
    const { mayOverflow, keepsOrder } = this.#options
    if (keepsOrder?.() === true) return this.#moveAll(lane, latestMs)
    let moved = 0
    for (
      let delivery = this.#nextToMove(lane, latestMs);
      delivery !== undefined;
      delivery = this.#nextToMove(lane, latestMs)
    ) {
      if (!delivery.isAbandoned && lane.length < this.#share() && mayOverflow?.(delivery) === false) {
        lane.keep(delivery)
        continue
      }
      this.#queued--
      moved++
      this.#leave(delivery)
    }
    return moved
  }

  /**
   * If a delivery has waited too long, passes all of the lane to `overflow`, in their order. If only that
   * delivery left, those behind it would start before it.
   */
  #moveAll(lane: Lane<D>, latestMs: number): number {
    if (!lane.hasWaitedSince(latestMs, isNew)) return 0
    const moved = lane.remove(isNew)
    this.#queued -= moved.length
    for (const delivery of moved) this.#leave(delivery)
    return moved.length
  }

  /**
   * Removes a delivery that has waited too long, and returns it. Removes a kept delivery only if it needn't
   * stay any more.
   */
  #nextToMove(lane: Lane<D>, latestMs: number): D | undefined {
    const kept = lane.oldestKept
    const isFree = kept !== undefined && this.#options.mayOverflow?.(kept) !== false
    return isFree ? lane.shiftKept() : lane.shiftWaitingSince(latestMs)
  }
}

/** Returns true if the delivery's record isn't written for waiting yet, so that it holds up its partition. */
function isNew({ isFromQueue }: { readonly isFromQueue: boolean }): boolean {
  return !isFromQueue
}
