import { setTimeout as delay } from 'node:timers/promises'
import type { OpenHook } from '../pipeline/pipeline-ports.ts'
import { Board, type HookName } from './board.ts'
import { Decider, type Situation, type Terms, toldHooks, toldRefusing } from './decider.ts'
import {
  type AboutDestination,
  messageOf,
  type Notice,
  type NoticeKind,
  type NoticeMessage,
} from './notice.ts'
import { encodeForgotten, encodeReport, encodeTold, pagesOf, type Report } from './notice-record.ts'
import { encodeGone } from './gone-record.ts'
import {
  goneToForget,
  noticesOfPauses,
  PauseDecider,
  type PauseSituation,
  type PauseTerms,
} from './pause-decider.ts'
import { encodePause, type PauseRecord } from './pause-record.ts'
import type { Refusals } from './refusals.ts'
import type { Watch } from './watch.ts'
import type { KeyedRecord } from '../message/records.ts'

export type NotifierOptions = {
  /** The name of this process. Each process that reports has another name. */
  readonly reporter: string
  readonly terms: Terms
  /** Time between two readings of the topic, in milliseconds. At each reading, the hooks are checked too. */
  readonly everyMs: number
  readonly watch: Watch
  /** Which hooks refuse everything. Without it, nobody is told. */
  readonly refusals?: Refusals | undefined
  /**
   * Reads the records of the topic `notices`, from an offset to the end of the topic at the time of the call.
   */
  readonly read: (from: number) => AsyncIterable<readonly KeyedRecord[]>
  /**
   * Writes a record to the topic `notices`. Like `send`, it resolves once all in-sync replicas have the
   * record.
   */
  readonly write: (record: { readonly key: Buffer; readonly value: Buffer | null }) => Promise<void>
  /** Writes a notice to `events`. Resolves with false if Kafka will never accept the notice. */
  readonly send: (message: NoticeMessage) => Promise<boolean>
  readonly openHooks: () => readonly OpenHook[]
  /** Returns true if the catalog has the source of notices, and a destination that gets notices. */
  readonly isWanted: () => boolean
  /**
   * Returns true if the group's coordinator has received a heartbeat of this process within the session
   * timeout. In that case, no other process owns the units of this process.
   */
  readonly isOwner: () => boolean
  readonly situation: () => Omit<Situation, 'nowMs'>
  readonly aboutOf: (destinationId: string) => AboutDestination
  readonly pauses: PausesPort
  readonly pauseTerms: PauseTerms
  readonly observer: NotifierObserver
  /** Returns epoch milliseconds. */
  readonly now: () => number
}

/** The functions that the notifier needs to pause destinations whose URLs fail for too long. */
export type PausesPort = {
  /** Returns true if there are destinations that may be paused automatically. */
  readonly isOn: () => boolean
  readonly situation: () => Omit<PauseSituation, 'nowMs'>
}

export type NotifierObserver = {
  sent(notice: Notice): void
  /**
   * Called when this process has decided to pause a destination automatically, or has decided that an
   * automatic pause is over.
   */
  paused(record: PauseRecord & { readonly kind: 'paused' | 'resumed' }): void
  dropped(kind: NoticeKind, why: 'coalesced' | 'refused', count: number): void
  /**
   * Called when a round failed. A round is one reading of the topic with the steps that follow it. The
   * notifier goes on with the next round. `isNew`: true if the previous round succeeded.
   */
  failed(error: unknown, isNew: boolean): void
  /**
   * Called when a round succeeds after a round that failed. A round is one reading of the topic with the
   * steps that follow it.
   */
  recovered(): void
}

/**
 * If a process has not reported for this time in milliseconds, it counts as gone, and its record is removed.
 */
const goneAfterMs = 3_600_000

/**
 * Reports the failing hooks that this process has observed. The owner of one chosen unit also decides about
 * notices and automatic pauses, for all processes. A notice is written to the topic `notices`, then sent, and
 * then written again as sent. If the chosen unit gets another owner before the last step, the new owner
 * continues with the same `messageId`.
 */
export class Notifier {
  readonly #options: NotifierOptions
  readonly #board: Board
  #decider: Decider
  #pauseDecider: PauseDecider
  /**
   * The time when the topic was last read to its end, in epoch milliseconds. If this was long ago, for
   * example because the process was suspended, new records may be old. In that case, the age of a record is
   * taken from its timestamp.
   */
  #caughtUpMs = -Infinity
  /** The number of records of the last report. */
  #pages = 0
  #isDeciding = false
  #hasFailed = false
  readonly #stopping = new AbortController()
  readonly #loop: Promise<void>

  constructor(options: NotifierOptions) {
    this.#options = options
    this.#board = new Board({ refusalsFail: options.pauseTerms.refusalsFail === true })
    this.#decider = new Decider(options.terms)
    this.#pauseDecider = new PauseDecider(options.pauseTerms)
    this.#loop = this.#run()
  }

  /** Starts to decide, because this process now owns the unit that is chosen for decisions. */
  acquire(): void {
    this.#decider = new Decider(this.#options.terms)
    this.#pauseDecider = new PauseDecider(this.#options.pauseTerms)
    this.#isDeciding = true
  }

  /** Stops deciding, because this process has lost the unit that is chosen for decisions. */
  release(): void {
    this.#isDeciding = false
  }

  /** Stops. Another process continues with the notices that are not sent yet. */
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
    const { watch, isWanted, pauses } = this.#options
    // If this process has read a pause, it must still end this pause, even if the catalog no longer allows
    // automatic pauses. Otherwise the pause would apply again after a later edit of the catalog.
    const isOn = isWanted() || pauses.isOn() || this.#board.pauses.paused.size > 0
    watch.isOn = isOn
    if (!isOn) {
      // The records that are read next may have been written long before they are read.
      this.#caughtUpMs = -Infinity
      return
    }
    await this.#read()
    watch.follow([...toldHooks(this.#board), ...this.#timedHooks()])
    this.#followRefusing()
    await this.#report()
    if (!this.#mayDecide()) return
    await this.#forgetSilent()
    if (isWanted()) await this.#decide()
    await this.#decidePauses()
  }

  async #forgetSilent(): Promise<void> {
    const { now, write, terms } = this.#options
    for (const reporter of this.#board.silent(now() - Math.max(goneAfterMs, terms.staleMs)))
      await write(encodeReport(reporter, undefined))
  }

  /**
   * Returns the hooks of each destination with a failure clock, which says since when all URLs of the
   * destination have failed. The successes of these hooks must be reported, because a success makes the clock
   * start anew.
   */
  #timedHooks(): readonly HookName[] {
    const { destinationOf } = this.#options.pauses.situation()
    return [...this.#board.pauses.timed].flatMap((destinationId) =>
      (destinationOf(destinationId)?.hookIds ?? []).map((hookId) => ({ destinationId, hookId })),
    )
  }

  #followRefusing(): void {
    const { refusals, now, terms } = this.#options
    refusals?.follow([...this.#board.refusing(now() - terms.staleMs).values(), ...toldRefusing(this.#board)])
  }

  #mayDecide(): boolean {
    return this.#isDeciding && this.#options.isOwner() && !this.#stopping.signal.aborted
  }

  async #read(): Promise<void> {
    const { read, now, terms } = this.#options
    const isNew = now() - this.#caughtUpMs < terms.staleMs
    for await (const records of read(this.#board.position)) {
      for (const record of records)
        this.#board.take(record, isNew ? now() : Math.min(record.timestampMs, now()))
    }
    this.#caughtUpMs = now()
  }

  /**
   * Writes a report with all failing hooks, in as many records as are needed. As long as a hook fails, a
   * report is written after each reading of the topic `notices`, because the failing hooks of a process that
   * stops reporting don't count any more.
   */
  async #report(): Promise<void> {
    const { watch, refusals, openHooks, write, reporter } = this.#options
    const refused = { refusing: refusals?.refusing(), accepted: refusals?.takeAccepted() }
    const pages = pagesOf(reporter, { ...watch.take(openHooks()), ...refused }, this.#pages)
    // If a write fails, the next report must also replace the records that this report may have written.
    this.#pages = pages.length
    for (const page of pages) await write(encodeReport(page.reporter, page.report))
    this.#pages = pages.filter(({ report }) => isAny(report)).length
  }

  async #decide(): Promise<void> {
    const { situation, now, write, observer } = this.#options
    for (const notice of this.#board.unsent()) await this.#send(notice)
    const { notices, forgotten, coalesced } = this.#decider.decide(this.#board, {
      ...situation(),
      nowMs: now(),
    })
    if (coalesced > 0) observer.dropped('failing', 'coalesced', coalesced)
    for (const key of forgotten) await write(encodeForgotten(key))
    await this.#tell(notices)
  }

  async #decidePauses(): Promise<void> {
    const { pauses, isWanted, now, write, observer } = this.#options
    const { notices, over } = noticesOfPauses(this.#board, isWanted())
    await this.#tell(notices)
    const decided = this.#pauseDecider.decide(this.#board, { ...pauses.situation(), nowMs: now() })
    for (const record of goneToForget(this.#board, pauses.situation().destinationOf))
      await write(encodeGone(record))
    for (const record of [...over, ...decided]) {
      if (!this.#mayDecide()) return
      await write(encodePause(record))
      const { kind, content } = record
      if (kind !== 'clock' && content !== undefined) observer.paused(record)
    }
  }

  async #tell(notices: readonly Notice[]): Promise<void> {
    for (const notice of notices) {
      if (!this.#mayDecide()) return
      await this.#options.write(encodeTold({ notice, isSent: false }))
      await this.#send(notice)
    }
  }

  async #send(notice: Notice): Promise<void> {
    const { send, write, aboutOf, observer } = this.#options
    if (!this.#mayDecide()) return
    const isTaken = await send(messageOf(notice, aboutOf))
    await write(encodeTold({ notice, isSent: true }))
    if (isTaken) observer.sent(notice)
    else observer.dropped(notice.kind, 'refused', 1)
  }
}

function isAny({ failing, answered, counts, refusing = [], accepted = [] }: Report): boolean {
  return [failing, answered, counts, refusing, accepted].some(({ length }) => length > 0)
}
