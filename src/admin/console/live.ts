import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { LiveGroup, LiveIndex, type LiveSubject } from './live-groups.ts'

/** How many live views there may be, of one session or token and of all. */
export type LiveLimits = { readonly ofHolder: number; readonly ofAll: number }

/** Something that has happened. Only views of what it is about, and views of everything, are asked. */
export type LiveEvent<View> = {
  readonly name: string
  readonly about: LiveSubject
  /** What a view gets of it. `undefined`: it doesn't concern the view. */
  readonly shownTo: (view: View) => object | undefined
  /**
   * Says whether it concerns a view that is told no more for now, which is cheaper. Absent: `shownTo` says
   * it.
   */
  readonly concerns?: (view: View) => boolean
  /** True: whoever comes back gets it, if it was not long ago. */
  readonly isKept?: boolean
  /** True: a view is told only so many a second, and how many it has missed. */
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
  /** What has happened is sent so often, in milliseconds. */
  readonly everyMs?: number
}

export type LiveOrder<View> = {
  readonly view: View
  /** The same for all views that show the same, whatever happens. */
  readonly key: string
  /** Names the session or token, for the limits. */
  readonly holder: string
  /** Returns false once the session or token has ended. */
  readonly isInForce: () => boolean
  /** The id of the last event that the browser has seen before. */
  readonly lastEventId: string | undefined
}

type Stream = {
  readonly holder: string
  readonly isInForce: () => boolean
  readonly response: ServerResponse
  writtenMs: number
}

type Group<View> = LiveGroup<View, Stream>

/** How many bytes may wait for a view, and for all views together, until its browser reads them. */
const mostBuffered = { ofStream: 1_024 * 1_024, ofAll: 16 * 1_024 * 1_024 } as const
/**
 * How many paced events a view is told. Nobody reads more, and many views of a busy installation must not
 * cost its deliveries.
 */
const pace = { perSecond: 5, burst: 60 } as const
const usualEveryMs = 500
const usualHeartbeatMs = 15_000
/** How long a view that was ended may take to read why, in milliseconds. */
const closeAfterMs = 1_000

/**
 * Sends events to browsers, as server-sent events. Views that show the same are one group: what happens is
 * looked at and written as JSON once for a group, gathered, and sent to all of its views as the same bytes,
 * twice a second. A view never costs more than its limits: if its browser doesn't keep up, the view is ended
 * with a reason, and the browser asks again.
 */
export class LiveStreams<View extends LiveSubject> {
  readonly #options: LiveOptions
  readonly #everyMs: number
  readonly #groups = new Map<string, Group<View>>()
  readonly #index = new LiveIndex<Group<View>>()
  /** How many views each holder has. */
  readonly #held = new Map<string, number>()
  #count = 0
  /** The events of an earlier process have other ids. */
  readonly #epoch = randomBytes(6).toString('hex')
  #sequence = 0
  readonly #timer: NodeJS.Timeout

  constructor(options: LiveOptions) {
    this.#options = options
    this.#everyMs = options.everyMs ?? usualEveryMs
    this.#timer = setInterval(() => this.#tick(), this.#everyMs).unref()
  }

  get count(): number {
    return this.#count
  }

  /** Yields what is shown now, each once, with its key. */
  *shown(): Generator<{ readonly key: string; readonly view: View }> {
    for (const group of this.#groups.values()) if (group.members.size > 0) yield group
  }

  /** Returns true if one more view may be opened. */
  hasRoom(holder: string): boolean {
    const { ofHolder, ofAll } = this.#options.limits
    return (this.#held.get(holder) ?? 0) < ofHolder && this.#count < ofAll
  }

  /** Returns true if somebody may be shown an event about this. */
  mayConcern(about: LiveSubject): boolean {
    return this.#index.mayConcern(about)
  }

  /** Sends events over a response from now on, until it is closed. Its head was sent already. */
  open(response: ServerResponse, { view, key, holder, isInForce, lastEventId }: LiveOrder<View>): void {
    const group = this.#groupOf(key, view)
    // What has happened before isn't for this view, or is told below.
    this.#flush(group, performance.now())
    const missed = this.#missed(group, lastEventId)
    const stream = { holder, isInForce, response, writtenMs: performance.now() }
    const ready = partOf('ready', { isComplete: missed !== undefined })
    response.write(`retry: 3000\n${ready}${(missed ?? []).map(({ text }) => text).join('')}`)
    group.members.add(stream)
    this.#count++
    this.#held.set(holder, (this.#held.get(holder) ?? 0) + 1)
    response.once('close', () => this.#leave(group, stream))
  }

  send(event: LiveEvent<View>): void {
    // Many views show the same, which is written as JSON once.
    const texts = new Map<object, string>()
    let sequence = 0
    for (const group of this.#index.about(event.about)) {
      if (event.isPaced === true && group.budget < 1) {
        if (concerns(event, group.view)) group.skipped++
        continue
      }
      const shown = event.shownTo(group.view)
      if (shown === undefined) continue
      if (sequence === 0) sequence = ++this.#sequence
      const text = texts.get(shown) ?? this.#textOf(event.name, shown, sequence)
      texts.set(shown, text)
      if (!group.gather(text, event.isKept === true ? { sequence } : undefined)) group.skipped++
      else if (event.isPaced === true) group.budget -= 1
    }
  }

  /** Sends something to the views with this key alone. */
  tell(key: string, name: string, data: object): void {
    this.#groups.get(key)?.gather(this.#textOf(name, data, ++this.#sequence), undefined)
  }

  /** Ends all views. */
  close(): void {
    clearInterval(this.#timer)
    for (const group of this.#groups.values()) {
      const last = group.take()
      for (const stream of group.members) this.#end(group, stream, { why: 'stopping', last })
    }
  }

  #groupOf(key: string, view: View): Group<View> {
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    // Nobody knows what has concerned these views before.
    const group: Group<View> = new LiveGroup(key, view, { budget: pace.burst, sequence: ++this.#sequence })
    this.#groups.set(key, group)
    this.#index.add(group, view)
    return group
  }

  /**
   * Returns what a browser has missed that has seen an event before. `undefined`: nobody knows, because that
   * was too long ago, or in another process.
   */
  #missed(group: Group<View>, lastEventId: string | undefined): ReturnType<Group<View>['since']> {
    if (lastEventId === undefined || lastEventId === '') return []
    const [epoch, text = ''] = lastEventId.split('.', 2)
    const seen = Number(text)
    const isKnown = epoch === this.#epoch && Number.isSafeInteger(seen) && seen <= this.#sequence
    return isKnown ? group.since(seen) : undefined
  }

  #textOf(name: string, shown: object, sequence: number): string {
    return `id: ${this.#epoch}.${sequence}\n${partOf(name, shown)}`
  }

  #leave(group: Group<View>, stream: Stream): boolean {
    if (!group.members.delete(stream)) return false
    this.#count--
    if (group.members.size === 0) {
      group.emptySinceMs = performance.now()
      // Whoever opens and closes views all the time doesn't fill the memory.
      if (this.#groups.size > 2 * this.#options.limits.ofAll) this.#forget(group)
    }
    const left = (this.#held.get(stream.holder) ?? 1) - 1
    if (left === 0) this.#held.delete(stream.holder)
    else this.#held.set(stream.holder, left)
    return true
  }

  /** Sends what was gathered, ends what is over, and keeps proxies from closing what is idle. */
  #tick(): void {
    const nowMs = performance.now()
    for (const group of this.#groups.values()) {
      group.budget = Math.min(pace.burst, group.budget + (pace.perSecond * this.#everyMs) / 1_000)
      this.#tellSkipped(group)
      this.#flush(group, nowMs)
      if (group.isForgotten(nowMs)) this.#forget(group)
    }
    this.#endMostBuffered()
  }

  #forget(group: Group<View>): void {
    this.#groups.delete(group.key)
    this.#index.remove(group, group.view)
  }

  #tellSkipped(group: Group<View>): void {
    if (group.skipped === 0) return
    const sequence = ++this.#sequence
    const text = this.#textOf('skipped', { count: group.skipped }, sequence)
    if (group.gather(text, { sequence })) group.skipped = 0
  }

  #flush(group: Group<View>, nowMs: number): void {
    const text = group.take()
    const bytes = text === '' ? undefined : Buffer.from(text)
    for (const stream of group.members) {
      if (!stream.isInForce()) this.#end(group, stream, { why: 'session' })
      else if (stream.response.writableLength > mostBuffered.ofStream)
        this.#end(group, stream, { why: 'slow' })
      else if (bytes !== undefined) write(stream, bytes, nowMs)
      else if (nowMs - stream.writtenMs > (this.#options.heartbeatMs ?? usualHeartbeatMs))
        write(stream, heartbeat, nowMs)
    }
  }

  /** Ends the view for which most bytes wait, if all together are too many. */
  #endMostBuffered(): void {
    let sum = 0
    let most: { readonly group: Group<View>; readonly stream: Stream } | undefined
    for (const group of this.#groups.values())
      for (const stream of group.members) {
        const bytes = stream.response.writableLength
        sum += bytes
        if (bytes > (most?.stream.response.writableLength ?? 0)) most = { group, stream }
      }
    if (most !== undefined && sum > mostBuffered.ofAll) this.#end(most.group, most.stream, { why: 'slow' })
  }

  #end(group: Group<View>, stream: Stream, { why, last = '' }: { why: LiveEnd; last?: string }): void {
    if (!this.#leave(group, stream)) return
    const { response } = stream
    response.end(`${last}${partOf('end', { reason: why })}`)
    // A browser that reads nothing doesn't read this either.
    setTimeout(() => response.destroy(), closeAfterMs).unref()
    this.#options.onEnded?.(why)
  }
}

const heartbeat = Buffer.from(': still here\n\n')

function write(stream: Stream, bytes: Buffer, nowMs: number): void {
  stream.response.write(bytes)
  stream.writtenMs = nowMs
}

function concerns<View>({ concerns: says, shownTo }: LiveEvent<View>, view: View): boolean {
  return says === undefined ? shownTo(view) !== undefined : says(view)
}

function partOf(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}
