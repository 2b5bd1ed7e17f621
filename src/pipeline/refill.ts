import type { Lanes } from '../delivery/lanes/lanes-ports.ts'
import type { BufferAccount } from './buffer-account.ts'
import { stateEffectOf } from './paused-or-off.ts'
import type { Delivery } from './delivery.ts'
import type { PipelineOptions, QueueClass, WaitingQueue } from './pipeline-ports.ts'

type RefillOptions = Pick<PipelineOptions, 'catalog' | 'whileAutoPaused'> & {
  readonly account: BufferAccount
  readonly lanes: Lanes<Delivery>
  readonly queue: WaitingQueue
  readonly isDraining: () => boolean
}

/**
 * The shortest time between two looks at all destinations whose messages wait, in milliseconds. A look finds
 * those that nothing else hastens: a destination that isn't paused any more, and room in the buffer.
 */
const lookMs = 100
/** Looks take at most this part of the time, even if there are a hundred thousand paused destinations. */
const mostOfTime = 0.05
/** The fewest deliveries that a lane may hold ready. */
const leastReady = 8
/** A lane holds at most this part of the free buffer ready, so that many slow lanes leave room for others. */
const mostOfFree = 1 / 8
/** While less than this part of the buffer is free, only empty lanes are refilled. */
const scarce = 1 / 4
/**
 * The part of a lane's room that a class of its queue gets, if the others want theirs too. It follows the
 * turns that the classes have in a lane (`lane-queue.ts`).
 */
const parts: readonly (readonly [queueClass: QueueClass, part: number])[] = [
  ['front', 0.7],
  ['fresh', 0.7],
  ['retry', 0.2],
  ['backfill', 0.1],
]

/** Pulls deliveries from the queues in Kafka into their lanes, when the lanes have room. */
export class Refill {
  readonly #options: RefillOptions
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: RefillOptions) {
    this.#options = options
    this.#lookIn(lookMs)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  /** Pulls as many deliveries of a destination as its lane has room for. */
  refill(destinationId: string): void {
    const { queue, lanes, isDraining } = this.#options
    if (this.#isStopped || isDraining()) return
    const room = this.#roomOf(destinationId)
    let left = room
    for (const [queueClass, part] of parts) {
      if (left <= 0) break
      left -= queue.pull(destinationId, queueClass, Math.min(left, Math.ceil(room * part)))
    }
    for (const [queueClass] of parts) {
      if (left <= 0) break
      left -= queue.pull(destinationId, queueClass, left)
    }
    lanes.setFed(destinationId, queue.countOf(destinationId) > 0)
  }

  #lookIn(ms: number): void {
    this.#timer = setTimeout(() => {
      const startedMs = performance.now()
      for (const destinationId of this.#options.queue.waiting()) this.refill(destinationId)
      this.#lookIn(Math.max(lookMs, (performance.now() - startedMs) / mostOfTime))
    }, ms)
    this.#timer.unref()
  }

  #roomOf(destinationId: string): number {
    const { catalog, account, lanes, queue, whileAutoPaused } = this.#options
    const destination = catalog().destinations.get(destinationId)
    const held = lanes.queuedIn(destinationId) + queue.wantedOf(destinationId)
    const free = account.freeRecords
    if (free <= scarce * account.maxRecords && held > 0) return 0
    if (destination?.state !== 'on') {
      // What waits for a paused destination stays in Kafka. Of any other state come dead letters.
      const isKept = stateEffectOf(destination, whileAutoPaused).kind === 'park'
      return isKept ? 0 : Math.max(0, leastReady * leastReady - held)
    }
    const most = Math.max(leastReady, Math.min(2 * destination.maxInFlight, Math.floor(free * mostOfFree)))
    return Math.max(0, most - held)
  }
}
