import { LearnedLimit } from '../../../../src/delivery/load/learned-limit.ts'

/** The answer of a simulated server. It comes at `atMs`, or never if `atMs` is infinite. */
export type SimulatedAnswer = { readonly atMs: number; readonly status: 200 | 429 | 500 | 503 }

/** A server that is asked at `nowMs`. `inFlight`: the requests that it has, with this one. */
export type SimulatedServer = (nowMs: number, inFlight: number) => SimulatedAnswer

/** Returns a server with `workers` workers. It does all work that it got, even if nobody waits for it. */
export function queueing(workers: number, serviceMs: (nowMs: number) => number): SimulatedServer {
  const freeAtMs = Array.from({ length: workers }, () => 0)
  return (nowMs) => {
    const first = freeAtMs.indexOf(Math.min(...freeAtMs))
    const atMs = Math.max(nowMs, freeAtMs[first] ?? 0) + serviceMs(nowMs)
    freeAtMs[first] = atMs
    return { atMs, status: 200 }
  }
}

/** Returns a server that takes any number of requests at once. */
export function parallel(latencyMs: (nowMs: number) => number): SimulatedServer {
  return (nowMs) => ({ atMs: nowMs + latencyMs(nowMs), status: 200 })
}

export type SimulatedRun = {
  readonly server: SimulatedServer
  readonly messages: number
  readonly processes?: number
  readonly ceiling?: number
  /** The time that a new connection takes, in addition to the request. */
  readonly handshakeMs?: number
  readonly untilMs?: number
  /** Ignores what was learned. */
  readonly isFixed?: boolean
}

export type Simulated = {
  readonly requests: number
  readonly taken: number
  /** When each message was taken. */
  readonly takenAtMs: readonly number[]
  readonly endMs: number
  readonly limits: readonly LearnedLimit[]
  readonly mostInFlight: number
}

const timeoutMs = 5_000
/** When a message is sent again that was not taken. */
const againMs = 10_000

type Event = { readonly atMs: number; readonly order: number; run(): void }

/** A clock that jumps from event to event. */
class Events {
  readonly #heap: Event[] = []
  #order = 0
  nowMs = 1_000

  at(atMs: number, run: () => void): void {
    const heap = this.#heap
    heap.push({ atMs: Math.max(atMs, this.nowMs), order: this.#order++, run })
    for (let at = heap.length - 1; at > 0;) {
      const above = (at - 1) >> 1
      if (!isBefore(heap[at], heap[above])) break
      swap(heap, at, above)
      at = above
    }
  }

  /** Runs the next event. Returns false if none is left. */
  next(): boolean {
    const heap = this.#heap
    const [event] = heap
    if (event === undefined) return false
    const last = heap.pop()
    if (heap.length > 0 && last !== undefined) {
      heap[0] = last
      for (let at = 0; ;) {
        const left = 2 * at + 1
        const least = isBefore(heap[left + 1], heap[left]) ? left + 1 : left
        if (!isBefore(heap[least], heap[at])) break
        swap(heap, at, least)
        at = least
      }
    }
    this.nowMs = event.atMs
    event.run()
    return true
  }
}

function isBefore(one: Event | undefined, other: Event | undefined): boolean {
  if (one === undefined || other === undefined) return false
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
}

function swap(heap: Event[], one: number, other: number): void {
  const kept = heap[one]
  const moved = heap[other]
  if (kept === undefined || moved === undefined) return
  heap[one] = moved
  heap[other] = kept
}

/**
 * Sends messages that are all there from the start to a simulated server, from processes that each learn a
 * limit. Hours take seconds.
 */
export function simulateLoad({
  server,
  messages,
  processes = 1,
  ceiling = 64,
  handshakeMs = 0,
  untilMs = Number.POSITIVE_INFINITY,
  isFixed = false,
}: SimulatedRun): Simulated {
  const events = new Events()
  const startMs = events.nowMs
  const takenAtMs: number[] = []
  let waiting = messages
  let requests = 0
  let atServer = 0
  let mostInFlight = 0
  const senders = Array.from({ length: processes }, () => ({
    limit: new LearnedLimit(() => 1 / processes, ceiling),
    inFlight: 0,
    idle: 0,
    latencyMs: 0,
    lastMs: Number.NEGATIVE_INFINITY,
    isWoken: false,
  }))

  const pump = (sender: (typeof senders)[number]): void => {
    while (waiting > 0 && (isFixed ? sender.inFlight < ceiling : sender.limit.inFlight < sender.limit.cap)) {
      const { part } = sender.limit
      const restMs = part < 1 && !isFixed ? sender.lastMs + sender.latencyMs / part - events.nowMs : 0
      if (restMs > 0) {
        if (!sender.isWoken) {
          sender.isWoken = true
          events.at(events.nowMs + restMs, () => {
            sender.isWoken = false
            pump(sender)
          })
        }
        return
      }
      waiting--
      start(sender)
    }
  }
  const start = (sender: (typeof senders)[number]): void => {
    requests++
    sender.inFlight++
    atServer++
    mostInFlight = Math.max(mostInFlight, atServer)
    const begunMs = events.nowMs
    sender.lastMs = begunMs
    const number = sender.limit.begun(begunMs)
    const connectMs = sender.idle > 0 ? 0 : handshakeMs
    if (sender.idle > 0) sender.idle--
    const arrive = (): void => {
      const answer = server(events.nowMs, atServer)
      const isLate = answer.atMs - begunMs > timeoutMs
      events.at(isLate ? begunMs + timeoutMs : answer.atMs, () => {
        atServer--
        sender.inFlight--
        if (!isLate) sender.idle++
        const isTaken = !isLate && answer.status === 200
        if (isTaken) takenAtMs.push(events.nowMs - startMs)
        else
          events.at(events.nowMs + againMs, () => {
            waiting++
            for (const one of senders) pump(one)
          })
        sender.latencyMs = events.nowMs - begunMs
        const isOverloaded = isLate || answer.status === 503 || answer.status === 429
        sender.limit.ended(number, begunMs, isOverloaded ? 'overloaded' : 'answered', events.nowMs)
        pump(sender)
      })
    }
    if (connectMs === 0) arrive()
    else events.at(begunMs + connectMs, arrive)
  }

  for (const sender of senders) pump(sender)
  while (takenAtMs.length < messages && events.nowMs - startMs < untilMs && events.next());
  return {
    requests,
    taken: takenAtMs.length,
    takenAtMs,
    endMs: events.nowMs - startMs,
    limits: senders.map(({ limit }) => limit),
    mostInFlight,
  }
}
