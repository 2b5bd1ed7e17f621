/**
 * One lane a destination: what waits for it, in order, and how much of it is in flight. Lanes that have work
 * take turns, so no destination's backlog is worked off before another's. O(1) a delivery.
 */

/** What a lane carries. */
export type Carried = {
  readonly laneKey: string
  /** Most deliveries of this lane in flight. */
  readonly laneCap: number
  /** True when its record isn't ours to deliver any more: it is handed to `letGo`. */
  readonly isAbandoned: boolean
}

export type Lanes<D extends Carried> = {
  offer(delivery: D): void
  /** A delivery that was started is over: its place in the lane is free. */
  finished(delivery: D): void
  /** No further starts until `open`; what is in flight goes on. */
  shut(): void
  open(): void
  /** Empties the queues and gives back what was in them. */
  takeQueued(): D[]
  readonly inFlight: number
  readonly queued: number
  stop(): void
}

export type LanesOptions<D> = {
  /** Most deliveries in flight over all lanes. */
  maxInFlight: number
  /** How long a delivery may wait in its lane before it is handed to `overflow`. */
  waitMs: number
  start: (delivery: D) => void
  overflow: (delivery: D) => void
  letGo: (delivery: D) => void
}

type Queued<D> = { delivery: D; sinceMs: number }

class Lane<D> {
  readonly key: string
  cap: number
  inFlight = 0
  /** True while it stands in the line of lanes that may start something. */
  isInLine = false
  #queue: Queued<D>[] = []
  #head = 0

  constructor(key: string, cap: number) {
    this.key = key
    this.cap = cap
  }

  get length(): number {
    return this.#queue.length - this.#head
  }

  get oldest(): Queued<D> | undefined {
    return this.#queue[this.#head]
  }

  push(delivery: D, sinceMs: number): void {
    this.#queue.push({ delivery, sinceMs })
  }

  shift(): D | undefined {
    const queued = this.#queue[this.#head]
    if (queued === undefined) return undefined
    this.#head++
    if (this.#head === this.#queue.length) {
      this.#queue = []
      this.#head = 0
    } else if (this.#head > 512 && this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head)
      this.#head = 0
    }
    return queued.delivery
  }
}

export function createLanes<D extends Carried>(options: LanesOptions<D>): Lanes<D> {
  const { maxInFlight, waitMs, start, overflow, letGo } = options
  const lanes = new Map<string, Lane<D>>()
  let line: Lane<D>[] = []
  let lineHead = 0
  let inFlight = 0
  let queued = 0
  let isShut = false
  let isPumping = false
  const sweep = setInterval(sendOverflowOn, Math.min(500, waitMs))
  sweep.unref()

  function laneOf(delivery: D): Lane<D> {
    let lane = lanes.get(delivery.laneKey)
    if (lane === undefined) {
      lane = new Lane(delivery.laneKey, delivery.laneCap)
      lanes.set(lane.key, lane)
    }
    lane.cap = delivery.laneCap
    return lane
  }

  function joinLine(lane: Lane<D>): void {
    if (lane.isInLine || lane.length === 0 || lane.inFlight >= lane.cap) return
    lane.isInLine = true
    line.push(lane)
  }

  function nextInLine(): Lane<D> | undefined {
    const lane = line[lineHead]
    if (lane === undefined) return undefined
    lineHead++
    if (lineHead === line.length) {
      line = []
      lineHead = 0
    } else if (lineHead > 1024) {
      line = line.slice(lineHead)
      lineHead = 0
    }
    lane.isInLine = false
    return lane
  }

  function nextToStart(): Lane<D> | undefined {
    return isShut || inFlight >= maxInFlight ? undefined : nextInLine()
  }

  function pump(): void {
    // `start` may finish a delivery at once, which pumps again: the loop below takes care of that.
    if (isPumping) return
    isPumping = true
    for (let lane = nextToStart(); lane !== undefined; lane = nextToStart()) startOne(lane)
    isPumping = false
  }

  function startOne(lane: Lane<D>): void {
    const delivery = takeFrom(lane)
    if (delivery === undefined) return
    inFlight++
    lane.inFlight++
    joinLine(lane)
    start(delivery)
  }

  function takeFrom(lane: Lane<D>): D | undefined {
    for (;;) {
      const delivery = lane.shift()
      if (delivery === undefined) return undefined
      queued--
      if (!delivery.isAbandoned) return delivery
      letGo(delivery)
    }
  }

  function letGoIfIdle(lane: Lane<D>): void {
    if (lane.inFlight === 0 && lane.length === 0 && !lane.isInLine) lanes.delete(lane.key)
  }

  function sendOverflowOn(): void {
    const latest = performance.now() - waitMs
    for (const lane of lanes.values()) {
      for (let oldest = lane.oldest; oldest !== undefined && oldest.sinceMs <= latest; oldest = lane.oldest) {
        lane.shift()
        queued--
        if (oldest.delivery.isAbandoned) letGo(oldest.delivery)
        else overflow(oldest.delivery)
      }
      letGoIfIdle(lane)
    }
  }

  return {
    offer(delivery) {
      const lane = laneOf(delivery)
      lane.push(delivery, performance.now())
      queued++
      joinLine(lane)
      pump()
    },
    finished(delivery) {
      const lane = laneOf(delivery)
      lane.inFlight--
      inFlight--
      joinLine(lane)
      pump()
      letGoIfIdle(lane)
    },
    shut() {
      isShut = true
    },
    open() {
      isShut = false
      pump()
    },
    takeQueued() {
      const taken: D[] = []
      for (const lane of lanes.values()) {
        for (let delivery = lane.shift(); delivery !== undefined; delivery = lane.shift()) {
          queued--
          if (delivery.isAbandoned) letGo(delivery)
          else taken.push(delivery)
        }
      }
      return taken
    },
    get inFlight() {
      return inFlight
    },
    get queued() {
      return queued
    },
    stop() {
      clearInterval(sweep)
    },
  }
}
