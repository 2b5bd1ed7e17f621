import { AwakeClock } from './awake-clock.ts'
import type { Breaker, TryClass } from './breaker.ts'
import { Queue } from './linked-queue.ts'

/** A request that is to be made to one hook. */
export type PacedTry = {
  readonly hook: PacedHook
  readonly tryClass: TryClass
  readonly bytes: number
  /**
   * The reason why the try must not start any more, which the bulkhead then passes to `dropped`. `undefined`:
   * the try may start.
   */
  readonly obstacle: 'abandoned' | 'changed' | 'stopped' | undefined
  /** Sends the request. When the request ends, call `Bulkhead.ended`. */
  start(): void
  /** Called when the bulkhead drops the try before its turn. The try will not be started. */
  dropped(why: BulkheadDropReason): void
}

/**
 * The reason why a try was dropped. `full`: the bulkhead has no room. `waited`: the try waited too long for
 * its turn. `skipped`: nothing suggested that the try could start in time. `changed`: the catalog has changed
 * or removed the destination, or the user of the message may have been deleted. `stopped`: Kafka accepts no
 * outcomes of the try's unit. `abandoned`: the record has another owner. `closed`: the worker stops.
 */
export type BulkheadDropReason =
  | 'full'
  | 'waited'
  | 'skipped'
  | 'changed'
  | 'stopped'
  | 'abandoned'
  | 'closed'

/** The part of a hook that the bulkhead uses. The same hook must always be passed as the same object. */
export type PacedHook = {
  readonly breaker: Breaker
  /**
   * The destination's own limit on requests in flight to this hook while its breaker is open, per process.
   * `undefined`: only the bulkhead's sockets limit these requests. While the breaker is closed, what was
   * learned about the hook limits them.
   */
  readonly cap: number | undefined
}

export type BulkheadOptions = {
  /** The limit on requests in flight to all failing hooks together. */
  maxInFlight: number
  /**
   * `maxTries`: the limit on tries that wait or are in flight. `maxBytes`: the limit on the bytes of their
   * bodies.
   */
  maxTries: number
  maxBytes: number
  /** Time that a try may wait for its turn, in milliseconds. */
  waitMs: number
  /**
   * Called before the bulkhead starts the tries of one turn of the event loop. If this function returns
   * false, the bulkhead starts no try until a later call returns true.
   */
  mayStart?: (() => boolean) | undefined
}

/**
 * Limit on requests that are started in one turn of the event loop. Each request may open a connection, and
 * the TLS handshake takes one millisecond of the thread that serves all hooks.
 */
const startsPerTurn = 4
const sweepMs = 250
/**
 * One hook may use at most this many times as many sockets as are free. So one failing hook gets two thirds
 * of all sockets, and two failing hooks get two fifths each.
 */
const socketShare = 2

type BerthPlace = 'nowhere' | 'in line' | 'asleep'

/** The tries that wait for one hook, and the number of its tries in flight. */
class Berth {
  readonly hook: PacedHook
  readonly queues: Record<TryClass, Queue<PacedTry>> = {
    only: new Queue(),
    first: new Queue(),
    last: new Queue(),
    between: new Queue(),
    again: new Queue(),
    probe: new Queue(),
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

  /** Removes the most urgent try that the hook's breaker allows now, and returns it. */
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
    const { breaker, cap } = this.hook
    if (breaker.state === 'closed') {
      if (!breaker.hasRoom(nowMs)) return false
    } else if (cap !== undefined && breaker.inFlight >= cap) return false
    return breaker.advise(tryClass, nowMs) === 'go'
  }

  take(isToGo: (one: PacedTry) => boolean): PacedTry[] {
    const taken = byUrgency.flatMap((tryClass) => this.queues[tryClass].remove(isToGo))
    this.queued -= taken.length
    return taken
  }

  /** Removes the tries that have waited since `latestMs` or longer, and returns them. */
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

const byUrgency: readonly TryClass[] = ['only', 'first', 'last', 'between', 'again', 'probe']

/**
 * Makes the requests to failing hooks. These requests have sockets, memory and turns of the event loop of
 * their own, so that they don't slow down healthy hooks (a bulkhead, as in a ship). All failing hooks share
 * the bulkhead and take turns. The tries of one hook may not take more room than is still free. First and
 * last tries start before all other tries. The breaker of a hook decides how often the hook may be tried.
 */
export class Bulkhead {
  readonly #options: BulkheadOptions
  readonly #berths = new Map<PacedHook, Berth>()
  /**
   * Berths that may have a try to start, in the order of their turns. Each berth has the waiting tries of one
   * hook.
   */
  readonly #line: Berth[] = []
  readonly #sweep: NodeJS.Timeout
  /** The clock that measures how long a try waits. The breakers use `performance.now()`. */
  readonly #clock = new AwakeClock()
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

  get inFlight(): number {
    return this.#inFlight
  }

  get queued(): number {
    return this.#tries - this.#inFlight
  }

  /** Total bytes of the bodies of all tries that wait or are in flight. */
  get bytes(): number {
    return this.#bytes
  }

  /** Number of hooks with a try that waits or is in flight. */
  get hooks(): number {
    return this.#berths.size
  }

  /**
   * Accepts a try, and later starts it or drops it. Returns `taken`, or the reason why the try was not
   * accepted.
   */
  offer(one: PacedTry): 'taken' | 'full' | 'skipped' {
    const berth = this.#berths.get(one.hook) ?? new Berth(one.hook)
    const nowMs = performance.now()
    const advice = one.hook.breaker.advise(one.tryClass, nowMs)
    if (advice === 'skip') one.hook.breaker.skipped(nowMs)
    if (advice === 'skip' && one.tryClass === 'last') one.hook.breaker.forgone()
    if (advice === 'skip' || this.#isHeldTooLong(one, nowMs)) return 'skipped'
    if (!this.#hasRoom(berth, one)) return 'full'
    this.#berths.set(one.hook, berth)
    berth.queues[one.tryClass].push(one, this.#clock.nowMs)
    berth.queued++
    this.#tries++
    this.#bytes += one.bytes
    berth.bytes += one.bytes
    if (advice === 'go') this.#joinLine(berth)
    else if (berth.place === 'nowhere') this.#sleepUntilHoldEnds(berth, nowMs)
    return 'taken'
  }

  /** Call this when a started request has ended and its socket is free. */
  ended(one: PacedTry): void {
    const berth = this.#berths.get(one.hook)
    if (berth === undefined) return
    berth.inFlight--
    this.#inFlight--
    this.#forget(berth, one)
    this.#joinLine(berth)
    if (this.#line.length > 0) this.#startSoon()
  }

  /** Starts no try until `open` is called. */
  shut(): void {
    this.#isShut = true
  }

  open(): void {
    if (this.#isShut) this.#openedMs = this.#clock.nowMs
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

  /**
   * Returns true if the hook of a try has asked for a pause, and the rest of this pause is longer than a try
   * may wait in the bulkhead. Returns false for `last` and `only` tries, because they don't wait for the end
   * of the pause.
   */
  #isHeldTooLong({ hook, tryClass }: PacedTry, nowMs: number): boolean {
    return (
      tryClass !== 'last' && tryClass !== 'only' && hook.breaker.heldUntilMs - nowMs > this.#options.waitMs
    )
  }

  /**
   * Returns true if a berth may hold one more try. A berth has the tries of one hook. The tries of one hook
   * may not take more room than is still free. So one failing hook gets at most half of the room, and there
   * is always room for a hook that begins to fail.
   */
  #hasRoom(berth: Berth, { bytes }: PacedTry): boolean {
    const { maxTries, maxBytes } = this.#options
    if (berth.held >= maxTries - this.#tries) return false
    // A try whose body is larger than `maxBytes` is accepted when the bulkhead holds no other try.
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
   * If the hook of a berth rests, puts the berth back in line when it may get a request again. If the
   * berth waits for any other reason, it is put back in line when a request ends, or at the next sweep.
   */
  #sleepUntilHoldEnds(berth: Berth, nowMs: number): void {
    const waitMs = berth.hook.breaker.restsUntilMs(nowMs) - nowMs
    if (waitMs <= 0 || waitMs > this.#options.waitMs) return
    berth.place = 'asleep'
    setTimeout(() => {
      if (berth.place !== 'asleep') return
      berth.place = 'nowhere'
      this.#joinLine(berth)
    }, Math.ceil(waitMs)).unref()
  }

  /**
   * Drops tries that have waited longer than `waitMs`, and puts in line the berth of each hook that has a
   * waiting try. Drops nothing until the bulkhead has been open for `waitMs`.
   */
  #lookAtAll(): void {
    const latestMs = this.#clock.nowMs - this.#options.waitMs
    if (this.#isShut) return
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
