import type { TokenBucket } from '../../async/token-bucket.ts'
import { Queue } from './linked-queue.ts'

/**
 * Urgency of a delivery. `fresh`: a delivery of a new message. `retry`: a retry that is due. `backfill`: a
 * delivery of a replay that an operator or a customer asked for.
 */
export type LaneClass = 'fresh' | 'retry' | 'backfill'

/**
 * The order in which the classes take turns. Of ten turns, seven are for the class `fresh`, two for `retry`
 * and one for `backfill`. If a class has no waiting delivery, its turn goes to the most urgent class that has
 * one.
 */
const turns: readonly LaneClass[] = [
  'fresh',
  'retry',
  'fresh',
  'fresh',
  'backfill',
  'fresh',
  'retry',
  'fresh',
  'fresh',
  'fresh',
]
const byUrgency: readonly LaneClass[] = ['fresh', 'retry', 'backfill']

/** When the deliveries of a lane are sent that leave it together, in one request. */
export type BatchLimits = {
  /** The most deliveries of a request. */
  readonly maxMessages: number
  /** The most bytes of a request. A larger delivery leaves alone. */
  readonly maxBytes: number
  /** The longest time, in milliseconds, that a delivery waits for others. */
  readonly maxWaitMs: number
}

/**
 * The longest time, in milliseconds, that a lane waits for a token of its rate limit, or for the end of a
 * pause, before it asks again. It asks again because an edit of the catalog, or a new assignment of
 * partitions, may have raised or removed the rate limit, and because somebody may have ended the pause.
 */
const mostWaitMs = 1_000
/** The weight of the last delivery in the average of their bytes. */
const lastWeight = 1 / 8

/**
 * The queue of one destination: its waiting deliveries, by `LaneClass`, and the number of its deliveries in
 * flight.
 */
export class Lane<D extends { readonly bytes: number }> {
  readonly key: string
  /** The destination's limit on deliveries in flight. */
  cap: number
  inFlight = 0
  /** How long its last requests took on average, in milliseconds; 0 if none has ended. */
  tookMs = 0
  /** How many bytes its last deliveries had on average; 0 if it has had none. */
  usualBytes = 0
  /** The number of requests that have ended since the limits of the lane were last renewed. */
  sinceRenewed = 0
  /**
   * The token bucket for this worker's fraction of the destination's rate limit. `undefined`: there is no
   * limit.
   */
  bucket: TokenBucket | undefined
  /**
   * The end of the pause (`performance.now()`) that began when a delivery was postponed; 0 if there is no
   * pause.
   */
  pausedUntilMs = 0
  /** The lane's place among the lanes that want to start a delivery. */
  place: 'nowhere' | 'in line' | 'blocked' | 'asleep' | 'gathering' = 'nowhere'
  /** The timer that ends the wait of a lane that gathers a batch. Only `Lanes` uses this field. */
  gathering: NodeJS.Timeout | undefined
  /**
   * True while the lane is in the queue of blocked lanes, or of slow ones. Only `Slots` uses these fields.
   */
  isInBlocked = false
  isInSlowBlocked = false
  /**
   * The time (`AwakeClock`) since which the lane has held more than its share of the buffer; 0 if it doesn't.
   */
  overSinceMs = 0
  /** True while the lane sheds: new messages over its share go to the retry ladder at once. */
  isShedding = false
  /** True while more deliveries of the lane wait outside of this process. */
  isFed = false
  /** True if the lane was idle at the last sweep. */
  isLeft = false
  readonly #queues: Record<LaneClass, Queue<D>> = {
    fresh: new Queue(),
    retry: new Queue(),
    backfill: new Queue(),
  }
  /**
   * The deliveries for which `keep` was called. They start before all other deliveries of the class `retry`.
   */
  readonly #kept = new Queue<D>()
  #turn = 0
  #length = 0
  #batch: BatchLimits | undefined
  /** The bytes of all waiting deliveries. They are counted only in a lane with a `batch`. */
  #bytes = 0

  constructor(key: string, cap: number) {
    this.key = key
    this.cap = cap
  }

  get length(): number {
    return this.#length
  }

  /** How deliveries leave together. `undefined`: each leaves alone. */
  get batch(): BatchLimits | undefined {
    return this.#batch
  }

  setBatch(batch: BatchLimits | undefined): void {
    if (batch === this.#batch) return
    this.#batch = batch
    this.#bytes = 0
    if (batch === undefined) return
    for (const queue of this.#all()) for (const { bytes } of queue.items()) this.#bytes += bytes
  }

  /** Returns true if the waiting deliveries fill a batch. */
  isFull({ maxMessages, maxBytes }: BatchLimits): boolean {
    return this.#length >= maxMessages || this.#bytes >= maxBytes
  }

  /**
   * About how many deliveries leave together: as many of those that wait as a batch has room for, by their
   * average size.
   */
  get perBatch(): number {
    if (this.#batch === undefined) return 1
    const { maxMessages, maxBytes } = this.#batch
    if (this.#length === 0) return maxMessages
    const fitting = Math.floor((maxBytes * this.#length) / this.#bytes)
    return Math.max(1, Math.min(maxMessages, fitting))
  }

  get isIdle(): boolean {
    return this.#length === 0 && this.inFlight === 0 && this.place === 'nowhere'
  }

  /**
   * If the lane may start a delivery now, takes a token of the rate limit for this delivery, and returns 0.
   * Otherwise returns how many milliseconds later this method must be called again.
   */
  waitMs(): number {
    // Most lanes have neither a pause nor a rate limit. The clock isn't read for them.
    if (this.pausedUntilMs === 0 && this.bucket === undefined) return 0
    const nowMs = performance.now()
    if (this.pausedUntilMs > nowMs) return Math.min(this.pausedUntilMs - nowMs, mostWaitMs)
    this.pausedUntilMs = 0
    return Math.min(this.bucket?.take(nowMs) ?? 0, mostWaitMs)
  }

  /**
   * Returns how long the pause or the rate limit keeps the lane from starting a delivery, in milliseconds.
   */
  closedForMs(nowMs: number): number {
    return Math.max(0, this.pausedUntilMs - nowMs, this.bucket?.take(nowMs, 0) ?? 0)
  }

  push(delivery: D, laneClass: LaneClass, sinceMs: number): void {
    this.usualBytes += (delivery.bytes - this.usualBytes) * (this.usualBytes === 0 ? 1 : lastWeight)
    this.#queues[laneClass].push(delivery, sinceMs)
    this.#added(delivery)
  }

  /** Puts back a delivery whose turn had come. It is the next one of its class again. */
  putBack(delivery: D, laneClass: LaneClass, sinceMs: number): void {
    this.#queues[laneClass].putBack(delivery, sinceMs)
    this.#added(delivery)
  }

  /**
   * Puts back a delivery that `shiftWaitingSince` has removed. From now on, `shiftWaitingSince` skips this
   * delivery.
   */
  keep(delivery: D): void {
    this.#kept.push(delivery, 0)
    this.#added(delivery)
  }

  /** The delivery that has waited here for the longest time, and since when. */
  get oldest(): { readonly delivery: D; readonly sinceMs: number } | undefined {
    let oldest = this.#kept.oldest
    for (const laneClass of byUrgency) {
      const first = this.#queues[laneClass].oldest
      if (first !== undefined && (oldest === undefined || first.sinceMs < oldest.sinceMs)) oldest = first
    }
    return oldest
  }

  get oldestKept(): D | undefined {
    return this.#kept.oldest?.delivery
  }

  shiftKept(): D | undefined {
    return this.#taken(this.#kept.shift())
  }

  /** Returns the delivery whose turn is next, which `shift` would remove. */
  peek(): D | undefined {
    if (this.#length === 0) return undefined
    const preferred = turns[this.#turn % turns.length] ?? 'fresh'
    let first = this.#firstOf(preferred)
    for (const laneClass of byUrgency) first ??= this.#firstOf(laneClass)
    return first
  }

  /** Removes the delivery whose turn is next, and returns it. */
  shift(): D | undefined {
    if (this.#length === 0) return undefined
    const preferred = turns[this.#turn % turns.length] ?? 'fresh'
    this.#turn++
    return this.#shiftFrom(preferred) ?? this.#shiftFirst()
  }

  /** Removes the oldest delivery of a new message, and returns it. */
  shiftFresh(): D | undefined {
    return this.#shiftFrom('fresh')
  }

  /**
   * Returns true if a delivery for which `counts` returns true has waited since `latestMs` or longer, also if
   * others stand before it.
   */
  hasWaitedSince(latestMs: number, counts: (delivery: D) => boolean): boolean {
    return byUrgency.some((laneClass) => {
      const oldest = this.#queues[laneClass].oldestOf(counts)
      return oldest !== undefined && oldest.sinceMs <= latestMs
    })
  }

  /**
   * Removes a delivery that has waited since `latestMs` or longer, even if the next turn is for another
   * class, and returns the delivery.
   */
  shiftWaitingSince(latestMs: number): D | undefined {
    for (const laneClass of byUrgency) {
      const oldest = this.#queues[laneClass].oldest
      if (oldest !== undefined && oldest.sinceMs <= latestMs)
        return this.#taken(this.#queues[laneClass].shift())
    }
    return undefined
  }

  /**
   * Removes, from all classes, the deliveries for which `isToGo` returns true. The others keep their order.
   */
  remove(isToGo: (delivery: D) => boolean): D[] {
    const removed = this.#all().flatMap((queue) => queue.remove(isToGo))
    for (const delivery of removed) this.#taken(delivery)
    return removed
  }

  #all(): Queue<D>[] {
    return [this.#kept, ...byUrgency.map((laneClass) => this.#queues[laneClass])]
  }

  #firstOf(laneClass: LaneClass): D | undefined {
    const kept = laneClass === 'retry' ? this.oldestKept : undefined
    return kept ?? this.#queues[laneClass].oldest?.delivery
  }

  #added(delivery: D): void {
    this.#length++
    if (this.#batch !== undefined) this.#bytes += delivery.bytes
  }

  #shiftFirst(): D | undefined {
    for (const laneClass of byUrgency) {
      const delivery = this.#shiftFrom(laneClass)
      if (delivery !== undefined) return delivery
    }
    return undefined
  }

  #shiftFrom(laneClass: LaneClass): D | undefined {
    const kept = laneClass === 'retry' ? this.shiftKept() : undefined
    return kept ?? this.#taken(this.#queues[laneClass].shift())
  }

  #taken(delivery: D | undefined): D | undefined {
    if (delivery === undefined) return undefined
    this.#length--
    if (this.#batch !== undefined) this.#bytes -= delivery.bytes
    return delivery
  }
}
