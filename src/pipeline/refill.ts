import { setImmediate as nextTurn } from 'node:timers/promises'
import type { DestinationDefinition, Endpoint, Endpoints } from '../delivery/endpoint.ts'
import type { LaneLimits, Lanes } from '../delivery/lanes/lanes-ports.ts'
import { failingForMs } from './attempt-plan.ts'
import { type BufferAccount, pulledOver } from './buffer-account.ts'
import { stateEffectOf } from './paused-or-off.ts'
import type { Delivery } from './delivery.ts'
import type { CatalogView, PipelineOptions, QueueClass, WaitingQueue } from './pipeline-ports.ts'

type RefillOptions = Pick<PipelineOptions, 'whileAutoPaused' | 'loginWaitMs' | 'now'> & {
  readonly endpoints: Endpoints
  readonly catalog: () => Pick<CatalogView, 'destinations'>
  readonly account: Pick<BufferAccount, 'freePulled' | 'freePulledBytes' | 'maxPulled'>
  readonly lanes: Pick<Lanes<Delivery>, 'queuedIn' | 'sizesOf' | 'setFed' | 'mayStartWithin'>
  readonly limitsOf: (destinationId: string) => LaneLimits | undefined
  readonly queue: Pick<WaitingQueue, 'waiting' | 'countOf' | 'oldestOf' | 'wantedOf' | 'wanted' | 'pull'>
  readonly isDraining: () => boolean
}

/**
 * The shortest time between two looks at all destinations whose messages wait, in milliseconds. A look finds
 * those that nothing else hastens: a destination that isn't paused any more, and room in the buffer.
 */
const lookMs = 100
/** Looks take at most this part of the time, even if there are a hundred thousand paused destinations. */
const mostOfTime = 0.05
/** The longest piece of a look, in milliseconds. Between two pieces, the event loop does what else waits. */
const mostPieceMs = 3
/**
 * A longer piece counts as this, in milliseconds: the process stood still, and did nothing. After a minute of
 * that, the next look would come in twenty.
 */
const countedPieceMs = 2 * mostPieceMs
/** The clock is read once for so many destinations, if nothing is done for them. */
const seenAtOnce = 64
/** The fewest deliveries that a lane may hold ready. */
const leastReady = 8
/** A lane with a rate limit holds at most as much ready as it sends in this time, in seconds. */
const mostReadyS = 2
/** A lane holds at most this part of the free room ready, so that many slow lanes leave room for others. */
const mostOfFree = 1 / 4
/**
 * While less than this part of the room for pulled records is free, only empty lanes that may start a
 * delivery soon are refilled, each with one request. When nothing is free, each of them gets one delivery,
 * until they take the part `pulledOver` of the room more than there is.
 */
const scarce = 1 / 4
/** What may start within this time, in milliseconds, may start soon: it is there for the next look. */
const soonMs = 250
/** How many of each class are pulled in one look to be given up. Younger ones among them go back. */
const fewGivenUp = 2
/** In this order, the classes get what is left of the room. */
const byUrgency: readonly QueueClass[] = ['front', 'fresh', 'retry', 'backfill']
/**
 * The parts of a lane's room for the classes of its queue, if the others want theirs too. They follow the
 * turns of the classes in a lane (`lane-queue.ts`). New messages in `front` are older than those in `fresh`.
 */
const parts = { new: 0.7, withRetries: 0.9 }
/** Multiples of it have fractions that are spread evenly, also if one takes only every tenth of them. */
const golden = (Math.sqrt(5) - 1) / 2

/** Pulls deliveries from the queues in Kafka into their lanes, when the lanes have room. */
export class Refill {
  readonly #options: RefillOptions
  #timer: NodeJS.Timeout | undefined
  #isStopped = false
  /** The destination with which the next look begins, because the last one had no room for it. */
  #next: string | undefined
  #pulls = 0

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
    this.#refill(destinationId)
  }

  /** Returns false if a destination that may start something gets nothing, because there is no room. */
  #refill(destinationId: string): boolean {
    const { queue, lanes, isDraining } = this.#options
    if (this.#isStopped || isDraining()) return true
    const lacking = this.#lacksLogin(destinationId)
    if (lacking !== undefined) {
      if (this.#hasWaitedForLogin(destinationId, lacking))
        for (const queueClass of byUrgency) queue.pull(destinationId, queueClass, fewGivenUp)
      return true
    }
    const room = this.#roomOf(destinationId)
    if (room !== undefined && room > 0) this.#pull(destinationId, room)
    lanes.setFed(destinationId, queue.countOf(destinationId) > 0)
    return room !== undefined
  }

  #pull(destinationId: string, room: number): void {
    const { queue } = this.#options
    const pull = (queueClass: QueueClass, most: number): number =>
      most <= 0 ? 0 : queue.pull(destinationId, queueClass, most)
    // A lane with a low rate has room for one delivery at a time. So what is rounded differs from pull to
    // pull.
    const offset = (this.#pulls++ * golden) % 1
    const fresh = Math.floor(room * parts.new + offset)
    const retries = Math.floor(room * parts.withRetries + offset) - fresh
    const older = pull('front', fresh)
    let left = room - older - pull('fresh', fresh - older)
    left -= pull('retry', retries)
    left -= pull('backfill', room - fresh - retries)
    for (const queueClass of byUrgency) left -= pull(queueClass, left)
  }

  /** Returns the endpoint of a destination of which no hook can be logged in to. Asks for a token in time. */
  #lacksLogin(destinationId: string): Endpoint | undefined {
    const { catalog, endpoints } = this.#options
    const destination = catalog().destinations.get(destinationId)
    if (destination?.state !== 'on' || !destination.hooks.some(({ login }) => login?.kind === 'oauth2'))
      return undefined
    const endpoint = endpoints.of(destination)
    return endpoint.hooks.every(({ login }) => login?.state() === 'failing') ? endpoint : undefined
  }

  /**
   * Returns true if the oldest delivery in a queue has waited for a login for so long that it is given up.
   */
  #hasWaitedForLogin(destinationId: string, endpoint: Endpoint): boolean {
    const { queue, loginWaitMs = Infinity, now } = this.#options
    if (failingForMs(endpoint) < loginWaitMs || queue.wantedOf(destinationId) > 0) return false
    const oldestMs = queue.oldestOf(destinationId)
    return oldestMs !== undefined && now() - oldestMs >= loginWaitMs
  }

  #lookIn(ms: number): void {
    this.#timer = setTimeout(() => void this.#look(), ms)
    this.#timer.unref()
  }

  async #look(): Promise<void> {
    let [sinceMs, tookMs] = [performance.now(), 0]
    /** Lets the event loop do what else waits, once a piece is over. */
    const breathe = async (pieceMs: number): Promise<void> => {
      tookMs += Math.min(pieceMs, countedPieceMs)
      await nextTurn()
      sinceMs = performance.now()
    }
    const ids = new Set<string>()
    let seen = 0
    for (const destinationId of this.#options.queue.waiting()) {
      const pieceMs = ++seen % seenAtOnce === 0 ? performance.now() - sinceMs : 0
      if (pieceMs >= mostPieceMs) await breathe(pieceMs)
      ids.add(destinationId)
    }
    const first = this.#next
    this.#next = undefined
    for (const destinationId of fromOn([...ids], first)) {
      const pieceMs = performance.now() - sinceMs
      if (pieceMs >= mostPieceMs) await breathe(pieceMs)
      if (!this.#refill(destinationId)) this.#next ??= destinationId
    }
    tookMs += Math.min(performance.now() - sinceMs, countedPieceMs)
    if (!this.#isStopped) this.#lookIn(Math.max(lookMs, tookMs / mostOfTime))
  }

  /** Returns how many deliveries may be pulled. `undefined`: there is no room for a lane that wants some. */
  #roomOf(destinationId: string): number | undefined {
    const { catalog, account, lanes, queue } = this.#options
    const destination = catalog().destinations.get(destinationId)
    const held = lanes.queuedIn(destinationId) + queue.wantedOf(destinationId)
    // What was pulled takes its room once it is read, and a hundred thousand destinations may resume at once.
    const free = account.freePulled - queue.wanted
    const few = scarce * account.maxPulled
    const mostReady = this.#mostReady(destination, free)
    if (free <= few && (held > 0 || mostReady === 0 || !lanes.mayStartWithin(destinationId, soonMs))) return 0
    if (free <= -pulledOver * account.maxPulled) return undefined
    const byBytes = destination?.state === 'on' ? this.#roomByBytes(destination, held) : Infinity
    const room = Math.min(Math.max(0, mostReady - held), byBytes)
    if (free > few) return room
    return Math.min(room, free > 0 ? (destination?.batch?.maxMessages ?? 1) : 1)
  }

  /**
   * Returns how many deliveries may be pulled by their bytes: a lane may have as many as are still free, and
   * always one. How large the first ones are is known only when they are there, so they are few.
   */
  #roomByBytes({ id, batch }: DestinationDefinition, held: number): number {
    const { account, lanes } = this.#options
    const { inFlight = 0, usualBytes = 0 } = lanes.sizesOf(id) ?? {}
    if (held + inFlight === 0 && usualBytes === 0) return Math.max(leastReady, batch?.maxMessages ?? 1)
    const free = usualBytes === 0 ? leastReady : account.freePulledBytes / usualBytes
    // What is pulled is no longer free.
    const most = Math.floor((free - held - inFlight) / 2)
    return Math.max(held + inFlight === 0 ? 1 : 0, most)
  }

  /** Returns how many deliveries a lane may hold ready. */
  #mostReady(destination: DestinationDefinition | undefined, free: number): number {
    if (destination?.state !== 'on') {
      // What waits for a paused destination stays in Kafka. Of any other state come dead letters.
      const isKept = stateEffectOf(destination, this.#options.whileAutoPaused).kind === 'park'
      return isKept ? 0 : leastReady * leastReady
    }
    const { id, maxInFlight, batch } = destination
    const perRequest = batch?.maxMessages ?? 1
    const rate = this.#options.limitsOf(id)?.rate
    const mostByRate =
      rate === undefined ? Infinity : Math.max(1, Math.ceil(rate.perSecond * mostReadyS)) * perRequest
    const most = Math.min(2 * maxInFlight * perRequest, mostByRate)
    // The first part of the free room may be less than one batch.
    const least = Math.min(mostByRate, Math.max(leastReady, Math.min(2 * perRequest, free / 2)))
    return Math.max(Math.floor(least), Math.min(most, Math.floor(free * mostOfFree)))
  }
}

/**
 * Returns the ids from `first` on, and then those before it. Otherwise the first of all would have all the
 * room, look after look.
 */
function fromOn(ids: readonly string[], first: string | undefined): readonly string[] {
  const index = first === undefined ? -1 : ids.indexOf(first)
  return index <= 0 ? ids : [...ids.slice(index), ...ids.slice(0, index)]
}
