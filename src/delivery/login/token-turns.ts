import { Fifo } from '../../async/fifo.ts'
import { type Rate, TokenBucket } from '../../async/token-bucket.ts'

/**
 * How urgent a request for a token is. `renewal`: the login has had a token. `first`: it has had none yet.
 * `again`: its last request has failed.
 */
export type TokenUrgency = (typeof urgencies)[number]

const urgencies = ['renewal', 'first', 'again'] as const

/** Who asks for a token: the first source of the destination stands for the customer. */
export type TokenAsker = {
  readonly tokenOrigin: string
  readonly sourceId: string
  readonly urgency: TokenUrgency
}

export type TokenTurnsOptions = {
  /** How many requests for tokens are under way at once. */
  readonly mostAtOnce?: number
  /** How often logins are tried again that have failed, all together. */
  readonly againRate?: Rate
  /** Returns milliseconds of a monotonic clock. */
  readonly monotonicMs?: () => number
}

/** A request that waits for its turn. */
type Waiting = { readonly asker: TokenAsker; start(): void }

/**
 * One source, and one token endpoint, may have at most this many times as many requests under way as are
 * free. So if only one wants all places, it gets two thirds of them.
 */
const placeShare = 2

/**
 * The requests for tokens of a process: how many are under way at once, and whose turn it is. Each opens a
 * connection, and a token endpoint that hangs keeps its place until the deadline. Logins that have worked
 * come first, and those that fail last. Sources take turns, and the token endpoints of a source do too.
 */
export class TokenTurns {
  readonly #mostAtOnce: number
  readonly #monotonicMs: () => number
  readonly #again: TokenBucket
  readonly #queues = { renewal: new Lines(), first: new Lines(), again: new Lines() }
  readonly #ofSource = new Map<string, number>()
  readonly #ofOrigin = new Map<string, number>()
  #underWay = 0
  #againUnderWay = 0
  #timer: NodeJS.Timeout | undefined

  constructor({
    mostAtOnce = 48,
    againRate = { perSecond: 20, burst: 20 },
    monotonicMs = () => performance.now(),
  }: TokenTurnsOptions = {}) {
    this.#mostAtOnce = mostAtOnce
    this.#monotonicMs = monotonicMs
    this.#again = new TokenBucket(againRate, monotonicMs())
  }

  /** Makes a request when it is its turn. `ask` never rejects. */
  run<T>(asker: TokenAsker, ask: () => Promise<T>): Promise<T> {
    return new Promise((resolve) => {
      const start = (): void => {
        this.#count(asker, 1)
        void ask().then((result) => {
          this.#count(asker, -1)
          resolve(result)
          this.#startNext()
        })
      }
      this.#queues[asker.urgency].push({ asker, start })
      this.#startNext()
    })
  }

  /** Forgets the requests that wait. They never end. */
  close(): void {
    for (const urgency of urgencies) this.#queues[urgency].clear()
    clearTimeout(this.#timer)
  }

  #startNext(): void {
    while (this.#underWay < this.#mostAtOnce) {
      const next = this.#next()
      if (next === undefined) return
      next.start()
    }
  }

  #next(): Waiting | undefined {
    for (const urgency of urgencies) {
      if (urgency === 'again' && !this.#mayTryAgain()) continue
      const next = this.#queues[urgency].take(this.#hasPlace)
      if (next === undefined) continue
      if (urgency === 'again') this.#again.take(this.#monotonicMs())
      return next
    }
    return undefined
  }

  /** Those that fail use at most half of the places. */
  #mayTryAgain(): boolean {
    if (this.#queues.again.isEmpty || this.#againUnderWay >= this.#mostAtOnce / 2) return false
    const waitMs = this.#again.take(this.#monotonicMs(), 0)
    if (waitMs === 0) return true
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#startNext()
    }, waitMs).unref()
    return false
  }

  readonly #hasPlace = (of: 'source' | 'origin', name: string): boolean => {
    const counts = of === 'source' ? this.#ofSource : this.#ofOrigin
    return (counts.get(name) ?? 0) < placeShare * (this.#mostAtOnce - this.#underWay)
  }

  #count({ sourceId, tokenOrigin, urgency }: TokenAsker, one: 1 | -1): void {
    this.#underWay += one
    if (urgency === 'again') this.#againUnderWay += one
    add(this.#ofSource, sourceId, one)
    add(this.#ofOrigin, tokenOrigin, one)
  }
}

/** Requests of one urgency that wait, by source and token endpoint. Maps keep them in the order of turns. */
class Lines {
  readonly #sources = new Map<string, Map<string, Fifo<Waiting>>>()

  get isEmpty(): boolean {
    return this.#sources.size === 0
  }

  clear(): void {
    this.#sources.clear()
  }

  push(waiting: Waiting): void {
    const { sourceId, tokenOrigin } = waiting.asker
    let origins = this.#sources.get(sourceId)
    if (origins === undefined) this.#sources.set(sourceId, (origins = new Map<string, Fifo<Waiting>>()))
    let line = origins.get(tokenOrigin)
    if (line === undefined) origins.set(tokenOrigin, (line = new Fifo<Waiting>()))
    line.push(waiting)
  }

  /** Removes the next one for which there is a place. Whose turn it was comes last from then on. */
  take(hasPlace: (of: 'source' | 'origin', name: string) => boolean): Waiting | undefined {
    for (const [sourceId, origins] of this.#sources) {
      if (!hasPlace('source', sourceId)) continue
      for (const [origin, line] of origins) {
        if (!hasPlace('origin', origin)) continue
        const next = line.shift()
        origins.delete(origin)
        if (line.length > 0) origins.set(origin, line)
        this.#sources.delete(sourceId)
        if (origins.size > 0) this.#sources.set(sourceId, origins)
        return next
      }
    }
    return undefined
  }
}

function add(counts: Map<string, number>, name: string, one: 1 | -1): void {
  const count = (counts.get(name) ?? 0) + one
  if (count === 0) counts.delete(name)
  else counts.set(name, count)
}
