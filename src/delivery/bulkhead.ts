import type { Breaker, TryClass } from './breaker.ts'
import { Queue } from './queue.ts'

/**
 * Where requests to hooks that aren't well are made: with sockets, memory and turns of the event loop of
 * their own, so that all others don't feel it (a bulkhead, as in a ship). Sick hooks share it: each may hold
 * as much as is free, and they take turns. First and last tries go before those in between. How fast a hook
 * may be tried is its breaker's to say.
 */

/** One request that is to be made to one hook. */
export type PacedTry = {
  readonly hook: PacedHook
  readonly tryClass: TryClass
  readonly bytes: number
  /** Why it isn't to be started any more: it is handed to `dropped` then. */
  readonly obstacle: 'abandoned' | 'changed' | 'standing' | undefined
  /** Sends the request. Its end is told to `Bulkhead.ended`. */
  start(): void
  /** It had no turn. It isn't started any more. */
  dropped(why: BulkheadDropReason): void
}

/**
 * `full`: there is no room. `waited`: its hook was not ready for it in time. `skipped`: nothing said that it
 * would be. `changed`: its destination is another by now, or off. `standing`: Kafka takes nothing of its
 * unit.
 */
export type BulkheadDropReason =
  | 'full'
  | 'waited'
  | 'skipped'
  | 'changed'
  | 'standing'
  | 'abandoned'
  | 'closed'

/** A hook, as far as a bulkhead is concerned. The same object for the same hook. */
export type PacedHook = {
  readonly breaker: Breaker
  /**
   * Most requests in flight that its owner allows in each process; absent: as many as there are sockets for.
   */
  readonly cap: number | undefined
  /** The same while its breaker is closed and it only asked for a pause. */
  readonly laneCap: number
}

export type BulkheadOptions = {
  /** Most requests in flight, of all sick hooks together. */
  maxInFlight: number
  /** Most that may wait or be in flight, and the bytes of their bodies. */
  maxTries: number
  maxBytes: number
  /** How long a try may wait for its turn, in milliseconds. */
  waitMs: number
  /** Asked before each turn of starts; false: nothing is started until `open`. */
  mayStart?: (() => boolean) | undefined
}

/**
 * Requests that are begun in one turn of the event loop. Each may cost a connection with its TLS handshake, a
 * millisecond of the thread that serves everybody.
 */
const startsPerTurn = 4
const sweepMs = 250
/**
 * A hook may hold so many times the sockets that are free: one of them alone two thirds, two of them two
 * fifths each.
 */
const socketShare = 2

type BerthPlace = 'nowhere' | 'in line' | 'asleep'

/** What waits for one hook, and what is in flight. */
class Berth {
  readonly hook: PacedHook
  readonly queues: Record<TryClass, Queue<PacedTry>> = {
    only: new Queue(),
    first: new Queue(),
    last: new Queue(),
    between: new Queue(),
    again: new Queue(),
  }
  place: BerthPlace = 'nowhere'
  inFlight = 0
  queued = 0
  bytes = 0

  constructor(hook: PacedHook) {
    this.hook = hook
  }

  get held(): number {
    return this.inFlight + this.queued
  }

  /** The first, by urgency, that its breaker lets go now. */
  next(nowMs: number, freeSockets: number): PacedTry | undefined {
    if (this.inFlight >= socketShare * freeSockets) return undefined
    for (const tryClass of byUrgency) {
      const queue = this.queues[tryClass]
      if (queue.oldest === undefined || !this.#mayGo(tryClass, nowMs)) continue
      this.queued--
      return queue.shift()
    }
    return undefined
  }

  #mayGo(tryClass: TryClass, nowMs: number): boolean {
    const { breaker, cap, laneCap } = this.hook
    const most = breaker.state === 'closed' ? laneCap : cap
    if (most !== undefined && breaker.inFlight >= most) return false
    return breaker.advise(tryClass, nowMs) === 'go'
  }

  take(isToGo: (one: PacedTry) => boolean): PacedTry[] {
    const taken = byUrgency.flatMap((tryClass) => this.queues[tryClass].remove(isToGo))
    this.queued -= taken.length
    return taken
  }

  /** Those that have waited since `latestMs` or longer. */
  takeWaitingSince(latestMs: number): PacedTry[] {
    const taken: PacedTry[] = []
    for (const tryClass of byUrgency) {
      const queue = this.queues[tryClass]
      while ((queue.oldest?.sinceMs ?? Number.POSITIVE_INFINITY) <= latestMs) {
        const one = queue.shift()
        if (one !== undefined) taken.push(one)
      }
    }
    this.queued -= taken.length
    return taken
  }
}

const byUrgency: readonly TryClass[] = ['only', 'first', 'last', 'between', 'again']

export class Bulkhead {
  readonly #options: BulkheadOptions
  readonly #berths = new Map<PacedHook, Berth>()
  /** Those that may have something to start, in turn. */
  readonly #line: Berth[] = []
  readonly #sweep: NodeJS.Timeout
  #inFlight = 0
  #tries = 0
  #bytes = 0
  #isShut = false
  #openedMs = 0
  #turn: NodeJS.Immediate | undefined

  constructor(options: BulkheadOptions) {
    this.#options = options
    this.#sweep = setInterval(() => this.#lookAtAll(), Math.min(sweepMs, options.waitMs))
    this.#sweep.unref()
  }

  /** Requests under way. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Tries that wait for their turn. */
  get queued(): number {
    return this.#tries - this.#inFlight
  }

  /** Bodies that it keeps. */
  get bytes(): number {
    return this.#bytes
  }

  /** Hooks of which something waits or is under way. */
  get hooks(): number {
    return this.#berths.size
  }

  /** Takes it, and starts it or drops it some time; or says why not. */
  offer(one: PacedTry): 'taken' | 'full' | 'skipped' {
    const berth = this.#berths.get(one.hook) ?? new Berth(one.hook)
    const nowMs = performance.now()
    const advice = one.hook.breaker.advise(one.tryClass, nowMs)
    if (advice === 'skip' && one.tryClass === 'last') one.hook.breaker.forgone()
    if (advice === 'skip' || this.#isHeldTooLong(one, nowMs)) return 'skipped'
    if (!this.#hasRoom(berth, one)) return 'full'
    this.#berths.set(one.hook, berth)
    berth.queues[one.tryClass].push(one, nowMs)
    berth.queued++
    this.#tries++
    this.#bytes += one.bytes
    berth.bytes += one.bytes
    if (advice === 'go') this.#joinLine(berth)
    else if (berth.place === 'nowhere') this.#sleepUntilHoldEnds(berth, nowMs)
    return 'taken'
  }

  /** A request that was started is over, and its socket free. */
  ended(one: PacedTry): void {
    const berth = this.#berths.get(one.hook)
    if (berth === undefined) return
    berth.inFlight--
    this.#inFlight--
    this.#forget(berth, one)
    this.#joinLine(berth)
    if (this.#line.length > 0) this.#startSoon()
  }

  /** Nothing more is started until `open`. */
  shut(): void {
    this.#isShut = true
  }

  open(): void {
    if (this.#isShut) this.#openedMs = performance.now()
    this.#isShut = false
    for (const berth of this.#berths.values()) if (berth.place === 'nowhere') this.#joinLine(berth)
    if (this.#line.length > 0) this.#startSoon()
  }

  dropAbandoned(): void {
    this.#dropWhere(({ obstacle }) => obstacle === 'abandoned', 'abandoned')
  }

  dropAll(): void {
    this.#dropWhere(() => true, 'closed')
  }

  stop(): void {
    clearInterval(this.#sweep)
    if (this.#turn !== undefined) clearImmediate(this.#turn)
  }

  /** Its hook asked for a longer pause than anything waits here. */
  #isHeldTooLong({ hook, tryClass }: PacedTry, nowMs: number): boolean {
    return (
      tryClass !== 'last' && tryClass !== 'only' && hook.breaker.heldUntilMs - nowMs > this.#options.waitMs
    )
  }

  /**
   * As with lanes, none may hold more than is free: one gets half, and there is always room for one that has
   * just fallen sick.
   */
  #hasRoom(berth: Berth, { bytes }: PacedTry): boolean {
    const { maxTries, maxBytes } = this.#options
    if (berth.held >= maxTries - this.#tries) return false
    // One that is larger than all that may be kept goes alone.
    return this.#bytes === 0 || berth.bytes + bytes <= maxBytes - this.#bytes
  }

  #forget(berth: Berth, { bytes }: PacedTry): void {
    this.#tries--
    this.#bytes -= bytes
    berth.bytes -= bytes
  }

  #joinLine(berth: Berth): void {
    if (berth.queued === 0) {
      if (berth.inFlight === 0 && this.#berths.get(berth.hook) === berth) this.#berths.delete(berth.hook)
      return
    }
    if (berth.place === 'in line') return
    berth.place = 'in line'
    this.#line.push(berth)
    this.#startSoon()
  }

  #startSoon(): void {
    if (this.#isShut || this.#inFlight >= this.#options.maxInFlight) return
    this.#turn ??= setImmediate(() => {
      this.#turn = undefined
      this.#startSome()
    })
  }

  #startSome(): void {
    if (this.#options.mayStart?.() === false) return
    const nowMs = performance.now()
    for (let started = 0; started < startsPerTurn && !this.#isShut;) {
      const berth = this.#inFlight < this.#options.maxInFlight ? this.#line.shift() : undefined
      if (berth === undefined) return
      berth.place = 'nowhere'
      if (this.#startOne(berth, nowMs)) started++
    }
    if (this.#line.length > 0) this.#startSoon()
  }

  #startOne(berth: Berth, nowMs: number): boolean {
    const one = berth.next(nowMs, this.#options.maxInFlight - this.#inFlight)
    if (one === undefined) {
      this.#sleepUntilHoldEnds(berth, nowMs)
      return false
    }
    const { obstacle } = one
    if (obstacle !== undefined) this.#drop(berth, one, obstacle)
    else {
      berth.inFlight++
      this.#inFlight++
      one.start()
    }
    this.#joinLine(berth)
    return obstacle === undefined
  }

  /**
   * Nothing but time is needed for what its hook wants to be spared for. All else is seen when an answer
   * comes, or at a sweep.
   */
  #sleepUntilHoldEnds(berth: Berth, nowMs: number): void {
    const waitMs = berth.hook.breaker.heldUntilMs - nowMs
    if (waitMs <= 0 || waitMs > this.#options.waitMs) return
    berth.place = 'asleep'
    setTimeout(() => {
      if (berth.place !== 'asleep') return
      berth.place = 'nowhere'
      this.#joinLine(berth)
    }, Math.ceil(waitMs)).unref()
  }

  /** Time in which nothing may be started is nobody's waiting. */
  #lookAtAll(): void {
    if (this.#isShut) return
    const nowMs = performance.now()
    const latestMs = nowMs - this.#options.waitMs
    for (const berth of this.#berths.values()) {
      if (this.#openedMs <= latestMs)
        for (const one of berth.takeWaitingSince(latestMs)) this.#drop(berth, one, 'waited')
      if (berth.place === 'nowhere') this.#joinLine(berth)
    }
  }

  #dropWhere(isToGo: (one: PacedTry) => boolean, why: BulkheadDropReason): void {
    for (const berth of this.#berths.values()) {
      for (const one of berth.take(isToGo)) this.#drop(berth, one, why)
      if (berth.queued === 0 || berth.place === 'nowhere') this.#joinLine(berth)
    }
  }

  #drop(berth: Berth, one: PacedTry, why: BulkheadDropReason): void {
    this.#forget(berth, one)
    one.dropped(why)
  }
}
