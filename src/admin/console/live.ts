import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'

/** How many live views there may be, of one session or token and of all. */
export type LiveLimits = { readonly ofHolder: number; readonly ofAll: number }

/**
 * Something that has happened. `shownTo`: what a view gets of it, or `undefined` if it doesn't concern the
 * view.
 */
export type LiveEvent<View> = {
  readonly name: string
  readonly shownTo: (view: View) => object | undefined
  /** True: whoever comes back gets it, if it was not long ago. */
  readonly isKept?: boolean
  /** True: a view is told only so many a second. If there are more, it is told that it has missed some. */
  readonly isPaced?: boolean
}

/**
 * Why a view was ended. `slow`: its browser doesn't read what it is sent. `session`: the session has ended.
 * `stopping`: this process stops.
 */
export type LiveEnd = 'slow' | 'session' | 'stopping'

export type LiveOptions = {
  readonly limits: LiveLimits
  readonly onEnded?: (why: LiveEnd) => void
  readonly heartbeatMs?: number
}

export type LiveOrder<View> = {
  readonly view: View
  /** Names the session or token, for the limits. */
  readonly holder: string
  /** Returns false once the session or token has ended. */
  readonly isInForce: () => boolean
  /** The id of the last event that the browser has seen before. */
  readonly lastEventId: string | undefined
}

type Stream<View> = LiveOrder<View> & {
  readonly response: ServerResponse
  writtenMs: number
  /** What is written next. */
  text: string
  /** How many paced events the view may be told now. */
  budget: number
  hasSkipped: boolean
}

type Kept<View> = { readonly sequence: number; readonly event: LiveEvent<View> }

/** How many bytes may wait for a view, and for all views together, until its browser reads them. */
const mostBuffered = { ofStream: 1_024 * 1_024, ofAll: 16 * 1_024 * 1_024 } as const
/** How many events are kept for who comes back. */
const mostKept = 500
/**
 * How many paced events a view is told. Nobody reads more, and many views of a busy installation must not
 * cost its deliveries.
 */
const pace = { perSecond: 20, burst: 60 } as const
const lookEveryMs = 500
/** How long a view that was ended may take to read why, in milliseconds. */
const closeAfterMs = 1_000

/**
 * Sends events to browsers as they happen, as server-sent events. A view never costs more than its limits: if
 * its browser doesn't keep up, the view is ended with a reason, and the browser asks again.
 */
export class LiveStreams<View> {
  readonly #options: LiveOptions
  readonly #streams = new Set<Stream<View>>()
  /** The events of an earlier process have other ids. */
  readonly #epoch = randomBytes(6).toString('hex')
  #sequence = 0
  #kept: readonly Kept<View>[] = []
  readonly #timer: NodeJS.Timeout
  #flush: NodeJS.Immediate | undefined

  constructor(options: LiveOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#look(), lookEveryMs).unref()
  }

  get count(): number {
    return this.#streams.size
  }

  /** Returns true if one more view may be opened. */
  hasRoom(holder: string): boolean {
    const { ofHolder, ofAll } = this.#options.limits
    const own = [...this.#streams].filter((stream) => stream.holder === holder).length
    return own < ofHolder && this.#streams.size < ofAll
  }

  /** Sends events over a response from now on, until it is closed. Its head was sent already. */
  open(response: ServerResponse, order: LiveOrder<View>): void {
    const stream: Stream<View> = {
      ...order,
      response,
      writtenMs: performance.now(),
      text: '',
      budget: pace.burst,
      hasSkipped: false,
    }
    this.#streams.add(stream)
    response.once('close', () => this.#streams.delete(stream))
    const missed = this.#missed(order.lastEventId)
    this.#add(stream, `retry: 3000\n${partOf('ready', { isComplete: missed !== undefined })}`)
    for (const { sequence, event } of missed ?? []) {
      const shown = event.shownTo(stream.view)
      if (shown !== undefined) this.#add(stream, this.#textOf(event, shown, sequence))
    }
  }

  send(event: LiveEvent<View>): void {
    const sequence = ++this.#sequence
    if (event.isKept === true) {
      this.#kept = [...this.#kept.slice(1 - mostKept), { sequence, event }]
    }
    // Many views show the same, which is written as JSON once.
    const texts = new Map<object, string>()
    for (const stream of this.#streams) {
      if (event.isPaced === true && stream.budget < 1) {
        // Whether it concerns the view isn't looked at: a view that has shown so many is asked to look
        // anyway.
        stream.hasSkipped = true
        continue
      }
      const shown = event.shownTo(stream.view)
      if (shown === undefined) continue
      const text = texts.get(shown) ?? this.#textOf(event, shown, sequence)
      texts.set(shown, text)
      if (event.isPaced === true) stream.budget -= 1
      this.#add(stream, text)
    }
  }

  /** Ends all views. */
  close(): void {
    clearInterval(this.#timer)
    clearImmediate(this.#flush)
    for (const stream of this.#streams) this.#end(stream, 'stopping')
  }

  /**
   * Returns what a browser has missed that has seen an event before. `undefined`: nobody knows, because that
   * was too long ago, or in another process.
   */
  #missed(lastEventId: string | undefined): readonly Kept<View>[] | undefined {
    if (lastEventId === undefined || lastEventId === '') return []
    const [epoch, text = ''] = lastEventId.split('.', 2)
    const seen = Number(text)
    const [oldest] = this.#kept
    const isKnown = epoch === this.#epoch && Number.isSafeInteger(seen) && seen <= this.#sequence
    if (!isKnown || (oldest !== undefined && this.#kept.length >= mostKept && seen < oldest.sequence - 1))
      return undefined
    return this.#kept.filter(({ sequence }) => sequence > seen)
  }

  #textOf({ name }: LiveEvent<View>, shown: object, sequence: number): string {
    return `id: ${this.#epoch}.${sequence}\n${partOf(name, shown)}`
  }

  /** Adds to what a view is sent. Events of one block of the log are sent in one write. */
  #add(stream: Stream<View>, text: string): void {
    stream.text += text
    this.#flush ??= setImmediate(() => {
      this.#flush = undefined
      for (const one of this.#streams) if (one.text !== '') this.#write(one)
    })
  }

  #write(stream: Stream<View>): void {
    if (!stream.isInForce()) return this.#end(stream, 'session')
    stream.response.write(stream.text)
    stream.text = ''
    stream.writtenMs = performance.now()
    if (stream.response.writableLength > mostBuffered.ofStream) return this.#end(stream, 'slow')
    // Counting all views is only worth it for one that doesn't keep up.
    if (stream.response.writableLength === 0) return
    const waiting = [...this.#streams].map((one) => ({ one, bytes: one.response.writableLength }))
    const sum = waiting.reduce((bytes, each) => bytes + each.bytes, 0)
    if (sum <= mostBuffered.ofAll) return
    const [most] = waiting.toSorted((one, other) => other.bytes - one.bytes)
    if (most !== undefined) this.#end(most.one, 'slow')
  }

  #end(stream: Stream<View>, why: LiveEnd): void {
    if (!this.#streams.delete(stream)) return
    const { response } = stream
    // What waits was not to be seen any more if the session has ended.
    response.end(`${why === 'session' ? '' : stream.text}${partOf('end', { reason: why })}`)
    // A browser that reads nothing doesn't read this either.
    setTimeout(() => response.destroy(), closeAfterMs).unref()
    this.#options.onEnded?.(why)
  }

  /**
   * Ends what is over, tells views that they have missed something, and keeps proxies from closing what is
   * idle.
   */
  #look(): void {
    const nowMs = performance.now()
    const { heartbeatMs = 15_000 } = this.#options
    for (const stream of this.#streams) {
      stream.budget = Math.min(pace.burst, stream.budget + (pace.perSecond * lookEveryMs) / 1_000)
      if (!stream.isInForce()) this.#end(stream, 'session')
      else if (stream.hasSkipped) this.#add(stream, partOf('skipped', {}))
      else if (nowMs - stream.writtenMs > heartbeatMs) this.#add(stream, ': still here\n\n')
      stream.hasSkipped = false
    }
  }
}

function partOf(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}
