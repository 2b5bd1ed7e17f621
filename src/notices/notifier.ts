import { setTimeout as delay } from 'node:timers/promises'
import type { OpenHook } from '../pipeline/pipeline-ports.ts'
import { Board } from './board.ts'
import { Decider, type Situation, type Terms, toldHooks } from './decider.ts'
import { messageOf, type Notice, type NoticeKind, type NoticeMessage } from './notice.ts'
import { encodeForgotten, encodeReport, encodeTold, type Report } from './notice-record.ts'
import type { Watch } from './watch.ts'

/** A record of the topic `notices`, as it is read. */
export type ReadRecord = {
  readonly offset: number
  readonly key: Buffer
  readonly value: Buffer | null
  readonly timestampMs: number
}

export type NotifierOptions = {
  /** This process among all that report. */
  readonly reporter: string
  readonly terms: Terms
  /** How often it looks, in milliseconds. */
  readonly everyMs: number
  readonly watch: Watch
  /** The records of the topic `notices` from an offset to the end as of the call. */
  readonly read: (from: number) => AsyncIterable<readonly ReadRecord[]>
  /** Writes a record there. These two resolve once all in-sync replicas have it. */
  readonly write: (record: { readonly key: Buffer; readonly value: Buffer | null }) => Promise<void>
  /** Writes a notice to `events`. False: Kafka will never take it. */
  readonly send: (message: NoticeMessage) => Promise<boolean>
  readonly openHooks: () => readonly OpenHook[]
  /** Whether the catalog has the source of notices, with somebody who gets them. */
  readonly isWanted: () => boolean
  /** Whether the group has heard of this process within its session: then nobody else has its units. */
  readonly isOwner: () => boolean
  readonly situation: () => Omit<Situation, 'nowMs'>
  readonly nameOf: (destinationId: string) => string
  readonly observer: NotifierObserver
  /** Epoch milliseconds. */
  readonly now: () => number
}

export type NotifierObserver = {
  sent(notice: Notice): void
  dropped(kind: NoticeKind, why: 'coalesced' | 'refused', count: number): void
  /** It is tried again. `isNew`: it worked before. */
  failed(error: unknown, isNew: boolean): void
  /** It works again. */
  recovered(): void
}

/** A process that has said nothing for so long is gone, and so is its record. */
const goneAfterMs = 3_600_000

/**
 * Reports what this process sees of failing hooks, and decides for all processes what is told of them where
 * it owns the unit that does so. A notice is written to the topic `notices`, sent, and written as sent:
 * whoever owns the unit next goes on there, with the same `messageId`.
 */
export class Notifier {
  readonly #options: NotifierOptions
  readonly #board = new Board()
  #decider: Decider
  #position = 0
  /** The topic was read to its end once: what it had before is as old as its records say. */
  #hasCaughtUp = false
  #hasReported = false
  #isDeciding = false
  #hasFailed = false
  readonly #stopping = new AbortController()
  readonly #loop: Promise<void>

  constructor(options: NotifierOptions) {
    this.#options = options
    this.#decider = new Decider(options.terms)
    this.#loop = this.#run()
  }

  /** The unit that decides is ours. */
  acquire(): void {
    this.#decider = new Decider(this.#options.terms)
    this.#isDeciding = true
  }

  /** It isn't any more. */
  release(): void {
    this.#isDeciding = false
  }

  /** What is under way is given up; another process goes on with it. */
  async stop(): Promise<void> {
    this.#isDeciding = false
    this.#stopping.abort()
    await this.#loop
  }

  async #run(): Promise<void> {
    const { everyMs, observer } = this.#options
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        await this.#look()
        if (this.#hasFailed) observer.recovered()
        this.#hasFailed = false
      } catch (error) {
        if (!signal.aborted) observer.failed(error, !this.#hasFailed)
        this.#hasFailed = true
      }
      await delay(everyMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #look(): Promise<void> {
    const { watch, isWanted } = this.#options
    const isOn = isWanted()
    watch.isOn = isOn
    if (!isOn) return
    await this.#read()
    watch.follow(toldHooks(this.#board))
    await this.#report()
    if (this.#mayDecide()) await this.#decide()
  }

  #mayDecide(): boolean {
    return this.#isDeciding && this.#options.isOwner() && !this.#stopping.signal.aborted
  }

  async #read(): Promise<void> {
    const { read, now } = this.#options
    for await (const records of read(this.#position)) {
      for (const record of records) {
        this.#board.take(record, this.#hasCaughtUp ? now() : Math.min(record.timestampMs, now()))
        this.#position = record.offset + 1
      }
    }
    this.#hasCaughtUp = true
  }

  /**
   * All that fails is told at each look, for as long as something does: a process that says nothing any more
   * is gone.
   */
  async #report(): Promise<void> {
    const { watch, openHooks, write, reporter } = this.#options
    const report = watch.take(openHooks())
    const hasAny = isAny(report)
    if (!hasAny && !this.#hasReported) return
    this.#hasReported = hasAny
    await write(encodeReport(reporter, report))
  }

  async #decide(): Promise<void> {
    const { situation, now, write, observer, terms } = this.#options
    for (const notice of this.#board.unsent()) await this.#send(notice)
    const { notices, forgotten, coalesced } = this.#decider.decide(this.#board, {
      ...situation(),
      nowMs: now(),
    })
    if (coalesced > 0) observer.dropped('failing', 'coalesced', coalesced)
    for (const key of forgotten) await write(encodeForgotten(key))
    for (const reporter of this.#board.silent(now() - Math.max(goneAfterMs, terms.staleMs)))
      await write(encodeReport(reporter, undefined))
    for (const notice of notices) {
      if (!this.#mayDecide()) return
      await write(encodeTold({ notice, isSent: false }))
      await this.#send(notice)
    }
  }

  async #send(notice: Notice): Promise<void> {
    const { send, write, nameOf, observer } = this.#options
    if (!this.#mayDecide()) return
    const isTaken = await send(messageOf(notice, nameOf))
    await write(encodeTold({ notice, isSent: true }))
    if (isTaken) observer.sent(notice)
    else observer.dropped(notice.kind, 'refused', 1)
  }
}

function isAny({ failing, answered, counts }: Report): boolean {
  return failing.length > 0 || answered.length > 0 || counts.length > 0
}
