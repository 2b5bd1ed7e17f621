import type { TokenBucket } from '../pacing/token-bucket.ts'
import { Queue } from './queue.ts'

/**
 * How urgent a delivery is: messages that come in, tries that have come due, and what somebody asked to
 * replay.
 */
export type LaneClass = 'fresh' | 'retry' | 'backfill'

/**
 * Who goes next while all three wait, of each ten turns: seven fresh, two retries (never less than a fifth),
 * one backfill. A class that has nothing waiting gives its turn to the next.
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

/** What waits for one destination, by class, and how much of it is in flight. */
export class Lane<D> {
  readonly key: string
  /** Most deliveries in flight; from the destination. */
  cap: number
  inFlight = 0
  /** Its share of the destination's rate limit, where that has one. */
  bucket: TokenBucket | undefined
  /** Where it stands among the lanes that want to start something. */
  place: 'nowhere' | 'in line' | 'blocked' | 'asleep' = 'nowhere'
  /** Since when it has been longer than its share of the buffer; 0 while it isn't. */
  overSinceMs = 0
  /** It was too long for too long: what it has no room for moves on at once. */
  isShedding = false
  /** It was idle when it was last looked at. */
  isLeft = false
  readonly #queues: Record<LaneClass, Queue<D>> = {
    fresh: new Queue(),
    retry: new Queue(),
    backfill: new Queue(),
  }
  #turn = 0
  #length = 0

  constructor(key: string, cap: number) {
    this.key = key
    this.cap = cap
  }

  get length(): number {
    return this.#length
  }

  get isIdle(): boolean {
    return this.#length === 0 && this.inFlight === 0 && this.place === 'nowhere'
  }

  push(delivery: D, laneClass: LaneClass, sinceMs: number): void {
    this.#queues[laneClass].push(delivery, sinceMs)
    this.#length++
  }

  /** The next by turn. */
  shift(): D | undefined {
    if (this.#length === 0) return undefined
    const preferred = turns[this.#turn % turns.length] ?? 'fresh'
    this.#turn++
    return this.#shiftFrom(preferred) ?? this.#shiftFirst()
  }

  /** The next that has waited since `latestMs` or longer, whatever its turn. */
  shiftWaitingSince(latestMs: number): D | undefined {
    for (const laneClass of byUrgency) {
      const oldest = this.#queues[laneClass].oldest
      if (oldest !== undefined && oldest.sinceMs <= latestMs) return this.#shiftFrom(laneClass)
    }
    return undefined
  }

  /** Takes out, from all classes, what is to go; the others keep their order. */
  remove(isToGo: (delivery: D) => boolean): D[] {
    const removed = byUrgency.flatMap((laneClass) => this.#queues[laneClass].remove(isToGo))
    this.#length -= removed.length
    return removed
  }

  #shiftFirst(): D | undefined {
    for (const laneClass of byUrgency) {
      const delivery = this.#shiftFrom(laneClass)
      if (delivery !== undefined) return delivery
    }
    return undefined
  }

  #shiftFrom(laneClass: LaneClass): D | undefined {
    const delivery = this.#queues[laneClass].shift()
    if (delivery !== undefined) this.#length--
    return delivery
  }
}
