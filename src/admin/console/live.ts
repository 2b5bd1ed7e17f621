import type { ServerResponse } from 'node:http'
import { LiveGroup, LiveIndex, type LiveSubject } from './live-groups.ts'

/** How many live views there may be: of one session or token, of all that share a limit, and of all. */
export type LiveLimits = { readonly ofHolder: number; readonly ofShare: number; readonly ofAll: number }

/** Who has a view, for the limits. */
export type LiveHolder = {
  /** Names the session or token. */
  readonly holder: string
  /** Names those who share a limit, such as all customers of one label. Absent: nobody else. */
  readonly share?: string | undefined
}

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
 * Why a view was ended. `slow`: its browser doesn't read what it is sent. `session`: the session has ended,
 * or may see something else than when the view began. `stopping`: this process stops.
 */
export type LiveEnd = 'slow' | 'session' | 'stopping'

export type LiveOptions<View> = {
  readonly limits: LiveLimits
  /** Says whether a view may still see what happened earlier. Absent: it may. */
  readonly stillSees?: (view: View, about: LiveSubject) => boolean
  readonly onEnded?: (why: LiveEnd) => void
  readonly heartbeatMs?: number
  /** What has happened is sent so often, in milliseconds. */
  readonly everyMs?: number
}

export type LiveOrder<View> = LiveHolder & {
  readonly view: View
  /** The same for all views that show the same, whatever happens. */
  readonly key: string
  /** Returns false once the session or token has ended, or may see something else. */
  readonly isInForce: () => boolean
  /** The id of the last event that the browser has seen before. */
  readonly lastEventId: string | undefined
}

type Stream = LiveHolder & {
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
  readonly #options: LiveOptions<View>
  readonly #everyMs: number
  readonly #groups = new Map<string, Group<View>>()
  readonly #index = new LiveIndex<Group<View>>()
  /** How many views each holder has, and how many those who share a limit. */
  readonly #held = new Map<string, number>()
  #count = 0
  #isClosed = false
  readonly #timer: NodeJS.Timeout

  constructor(options: LiveOptions<View>) {
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
  hasRoom({ holder, share }: LiveHolder): boolean {
    const { ofHolder, ofShare, ofAll } = this.#options.limits
    const held = (who: string | undefined): number => (who === undefined ? 0 : (this.#held.get(who) ?? 0))
    return held(holder) < ofHolder && held(share) < ofShare && this.#count < ofAll
  }

  /** Counts a view that is to be opened soon. Call the returned function before it is opened. */
  reserve(who: LiveHolder): () => void {
    this.#hold(who, 1)
    return () => this.#hold(who, -1)
  }

  /** Returns true if somebody may be shown an event about this. */
  mayConcern(about: LiveSubject): boolean {
    return this.#index.mayConcern(about)
  }

  /**
   * Sends events over a response from now on, until it is closed. Its head was sent already. Returns a
   * function that sends something to this view alone.
   */
  open(
    response: ServerResponse,
    { view, key, holder, share, isInForce, lastEventId }: LiveOrder<View>,
  ): (name: string, data: object) => void {
    // Behind an earlier answer of its connection, a view would be sent nothing, and nobody would learn that
    // it was closed.
    if (response.socket?.destroyed !== false || this.#isClosed) {
      response.end(this.#isClosed ? partOf('end', { reason: 'stopping' }) : '')
      return () => undefined
    }
    const group = this.#groupOf(key, view)
    // What has happened before isn't for this view, or is told below.
    this.#flush(group, performance.now())
    const missed = this.#missed(group, view, lastEventId)
    const stream = { holder, share, isInForce, response, writtenMs: performance.now() }
    const ready = partOf('ready', { isComplete: missed !== undefined })
    response.write(`retry: 3000\n${ready}${(missed ?? []).map(({ text }) => text).join('')}`)
    group.members.add(stream)
    this.#hold(stream, 1)
    response.once('close', () => this.#leave(group, stream))
    return (name, data) => {
      if (!group.members.has(stream) || !isInForce()) return
      // It has no id, because what was gathered earlier has one and comes later.
      write(stream, Buffer.from(partOf(name, data)), performance.now())
    }
  }

  send(event: LiveEvent<View>): void {
    // Many views show the same, which is written as JSON once.
    const texts = new Map<object, string>()
    for (const group of this.#index.about(event.about)) {
      if (event.isPaced === true && group.budget < 1) {
        if (concerns(event, group.view)) group.skipped++
        continue
      }
      const shown = event.shownTo(group.view)
      if (shown === undefined) continue
      const text = texts.get(shown) ?? partOf(event.name, shown)
      texts.set(shown, text)
      const kept = event.isKept === true ? event.about : undefined
      if (!group.gather({ text, kept })) group.skipped++
      else if (event.isPaced === true) group.budget -= 1
    }
  }

  /** Sends something to the views with this key alone. */
  tell(key: string, name: string, data: object): void {
    this.#groups.get(key)?.gather({ text: partOf(name, data) })
  }

  /** Ends all views. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
    for (const group of this.#groups.values()) {
      const last = group.take()
      for (const stream of group.members)
        this.#end(group, stream, stream.isInForce() ? { why: 'stopping', last } : { why: 'session' })
    }
  }

  #groupOf(key: string, view: View): Group<View> {
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    // Nobody knows what has concerned these views before.
    const group: Group<View> = new LiveGroup(key, view, pace.burst)
    this.#groups.set(key, group)
    this.#index.add(group, view)
    return group
  }

  /**
   * Returns what a browser has missed that has seen an event before, and may still see. `undefined`: nobody
   * knows, because that was too long ago, or in another process.
   */
  #missed(group: Group<View>, view: View, lastEventId: string | undefined): ReturnType<Group<View>['since']> {
    if (lastEventId === undefined || lastEventId === '') return []
    const { stillSees = () => true } = this.#options
    return group.since(lastEventId)?.filter(({ about }) => about === 'nothing' || stillSees(view, about))
  }

  #leave(group: Group<View>, stream: Stream): boolean {
    if (!group.members.delete(stream)) return false
    this.#hold(stream, -1)
    if (group.members.size === 0) {
      group.emptySinceMs = performance.now()
      // Whoever opens and closes views all the time doesn't fill the memory.
      if (this.#groups.size > 2 * this.#options.limits.ofAll) this.#forget(group)
    }
    return true
  }

  /** Counts a view that begins (1) or ends (-1). */
  #hold({ holder, share }: LiveHolder, change: 1 | -1): void {
    this.#count += change
    for (const who of [holder, share]) {
      if (who === undefined) continue
      const held = (this.#held.get(who) ?? 0) + change
      if (held === 0) this.#held.delete(who)
      else this.#held.set(who, held)
    }
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
    const text = partOf('skipped', { count: group.skipped })
    if (group.gather({ text, kept: 'nothing' })) group.skipped = 0
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

  /** Ends the views for which most bytes wait, until all together are few enough. */
  #endMostBuffered(): void {
    const waiting = [...this.#groups.values()].flatMap((group) =>
      [...group.members].map((stream) => ({ group, stream, bytes: stream.response.writableLength })),
    )
    let sum = waiting.reduce((bytes, one) => bytes + one.bytes, 0)
    if (sum <= mostBuffered.ofAll) return
    for (const { group, stream, bytes } of waiting.toSorted((one, other) => other.bytes - one.bytes)) {
      this.#end(group, stream, { why: 'slow' })
      sum -= bytes
      if (sum <= mostBuffered.ofAll) return
    }
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
