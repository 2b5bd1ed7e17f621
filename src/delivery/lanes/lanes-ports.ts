import type { Rate } from '../../async/token-bucket.ts'
import type { BatchLimits, Lane, LaneClass } from './lane-queue.ts'

/** The part of a delivery that its lane uses. */
export type LaneItem<D extends { readonly bytes: number }> = {
  readonly laneKey: string
  /** Limit on the lane's deliveries in flight. */
  readonly laneCap: number
  readonly laneClass: LaneClass
  /** Rate limit on the lane's attempts in this process. `undefined`: the rate isn't limited. */
  readonly laneRate: Rate | undefined
  /** How the lane's deliveries leave together, in one request. `undefined`: each leaves alone. */
  readonly laneBatch: BatchLimits | undefined
  /** The bytes that the delivery adds to a batch. They don't change while it waits in its lane. */
  readonly bytes: number
  /**
   * True if the worker took the record long after the record was available or due, because it is catching up.
   */
  readonly isLate: boolean
  /**
   * True if the delivery was pulled from a queue outside of this process. It waits in its lane without a
   * limit on the time, because its record is written for waiting.
   */
  readonly isFromQueue: boolean
  /**
   * The time (`AwakeClock`) at which the delivery first came to its lane; 0 until then. `Lanes` sets this
   * field.
   */
  queuedAtMs: number
  /** The time (`AwakeClock`) at which the delivery was last started. `Lanes` sets this field. */
  startedAtMs: number
  /** The lane in which the delivery waits, or from which it was started. `Lanes` sets this field. */
  lane: Lane<D> | undefined
  /**
   * True if this worker must not deliver the record any more. In that case, `letGo` is called with the
   * delivery.
   */
  readonly isAbandoned: boolean
}

/**
 * The limits of a lane: on its deliveries in flight, on the rate of its attempts in this process, and on its
 * batches. A batch counts as one delivery in flight, and as one attempt.
 */
export type LaneLimits = {
  readonly cap: number
  readonly rate: Rate | undefined
  readonly batch?: BatchLimits | undefined
}

/** A lane in which deliveries wait: how many, the oldest of them, and how long it has waited in the lane. */
export type WaitingLane<D> = {
  readonly laneKey: string
  readonly count: number
  readonly oldest: D
  readonly waitedMs: number
}

export type Lanes<D extends LaneItem<D>> = {
  offer(delivery: D): void
  /**
   * Removes the delivery that would start next in the lane of `lead`, if `fits` returns true for it, and
   * returns it. It leaves with `lead`, which has started, and has no place of its own: never call `finished`
   * or `postpone` for it.
   */
  takeMore(lead: D, fits: (next: D) => boolean): D | undefined
  /** Frees the place of a started delivery that has ended. */
  finished(delivery: D): void
  /**
   * Frees the place of a delivery for which nothing is sent. It doesn't count for the rate limit of its lane.
   * Call it during `start`.
   */
  sentNothing(delivery: D): void
  /**
   * Puts a started delivery back into its lane, because nothing was sent for it. The lane then starts nothing
   * for `ms` milliseconds.
   */
  postpone(delivery: D, ms: number): void
  /** Ends the time in which a lane starts nothing because a delivery was postponed, within a second. */
  endPause(laneKey: string): void
  /** Starts no delivery until `open` is called. Requests in flight go on. `waitMs` starts anew at `open`. */
  shut(): void
  open(): void
  /** Calls `letGo` for each waiting delivery that is abandoned. */
  letGoAbandoned(): void
  /**
   * Removes the queued deliveries that `isToGo` selects. Calls `letGo` for the abandoned deliveries, and
   * returns the others.
   */
  takeQueued(isToGo: (delivery: D) => boolean): D[]
  /** Says whether more deliveries of a lane wait outside of this process. `onLow` then asks for them. */
  setFed(laneKey: string, isFed: boolean): void
  readonly inFlight: number
  readonly queued: number
  /** Returns the lanes in which a delivery has waited for `leastMs` milliseconds or longer. */
  waiting(leastMs: number): Iterable<WaitingLane<D>>
  queuedIn(laneKey: string): number
  /**
   * Returns how many deliveries of a lane are in flight, and how many bytes its last ones had on average.
   * `undefined`: there is no such lane at present.
   */
  sizesOf(laneKey: string): { readonly inFlight: number; readonly usualBytes: number } | undefined
  /** About how many deliveries leave a lane together. `undefined`: there is no such lane at present. */
  perBatch(laneKey: string): number | undefined
  /** The lanes with a rate limit and a waiting delivery, by their keys. */
  rated(): Iterable<string>
  /** Returns true if a lane has no waiting delivery, and has not used its rate lately. */
  isSpare(laneKey: string): boolean
  /**
   * Returns true if neither a pause nor the rate limit of a lane lasts for longer than `ms` milliseconds, and
   * it needn't wait for a request that probably takes longer.
   */
  mayStartWithin(laneKey: string, ms: number): boolean
  /** Gives a lane its present limits at once. Otherwise it gets them within a quarter of a second. */
  renewLimits(laneKey: string): void
  /** Number of kept lanes: lanes with a delivery queued or in flight, and lanes that became idle recently. */
  readonly count: number
  stop(): void
}

export type LanesOptions<D> = {
  /** Limit on deliveries in flight over all lanes. */
  maxInFlight: number
  /** Time in milliseconds that a lane may hold more than its share before it sheds new messages. */
  patienceMs: number
  /**
   * Time in milliseconds that a delivery may wait in a lane that must not start more deliveries. After this
   * time, or after `patienceMs` if it keeps others from being fetched, the delivery is passed to `overflow`.
   * If this goes on, further deliveries of such lanes are passed on at once. But if `mayOverflow` returns
   * false for the delivery, it stays in the lane as long as the lane holds no more than its share.
   */
  waitMs: number
  /**
   * Returns false if the delivery can wait only in its lane, so that `overflow` would end it. If the lane of
   * such a delivery is full, the delivery takes the place of a new message.
   */
  mayOverflow?: ((delivery: D) => boolean) | undefined
  /**
   * Returns true while `overflow` keeps the order of the deliveries, because it appends each to its lane's
   * queue outside of this process. All deliveries of a lane then leave together.
   */
  keepsOrder?: () => boolean
  /**
   * An idle lane is kept for this number of milliseconds, or for up to twice as long. For a destination with
   * few messages, this costs less than a new lane for each message.
   */
  idleMs?: number
  /**
   * Called before each start of a delivery. If `mayStart` returns false, nothing is started. `Lanes` calls it
   * again when something changes in a lane, at each sweep, and when `open` is called.
   */
  mayStart?: (() => boolean) | undefined
  /**
   * Returns the present limits of a lane. `undefined`: the lane has no destination any more. This function is
   * necessary because the limits in a delivery are those of the time at which it was offered.
   */
  limitsOf?: ((laneKey: string) => LaneLimits | undefined) | undefined
  /** Returns how many more records the buffer has room for. */
  freeRecords: () => number
  /** Returns true while nothing is fetched because the buffer has no room. */
  isBufferFull?: (() => boolean) | undefined
  /**
   * Starts a delivery. In a lane with a `batch`, it is called once a batch is full, or its first delivery has
   * waited for `maxWaitMs`, or the buffer has no more room; `takeMore` then gives the others.
   */
  start: (delivery: D) => void
  overflow: (delivery: D) => void
  letGo: (delivery: D) => void
  /**
   * Returns true if more deliveries of a lane are on their way to it from outside of this process. What has
   * waited there waits for nothing else before it leaves in a batch.
   */
  areMoreComing?: ((laneKey: string) => boolean) | undefined
  /** Called when a lane that is fed from outside of this process holds few deliveries ready. */
  onLow?: ((laneKey: string) => void) | undefined
  onCongested: (isCongested: boolean) => void
}
