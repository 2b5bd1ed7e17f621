import type { HeldRecord } from '../message/held-record.ts'
import type { ParkReason, PipelineObserver } from '../pipeline/pipeline-ports.ts'
import type { RecallOrder } from './order-record.ts'

/** How many messages of a destination a run may give to the pipeline before the first of them has arrived. */
const firstRoom = 4
/** The most messages of a run that the pipeline holds. The buffer also serves other destinations. */
const mostRoom = 500

/** The part of a partition that a run still has to look through. */
export type Place = {
  from: number
  /** The end of the log when the run began here. What is written later isn't called back. */
  readonly end: number
  /** Records that were appended after this time, in epoch milliseconds, aren't called back. */
  readonly untilMs: number
}

/**
 * Why messages are taken early: somebody asked for it, the catalog was edited, the endpoint works again, or
 * somebody has given them up (`dropped`).
 */
export type RecallCause = 'asked' | 'edited' | 'recovered' | 'dropped'

export type RunOptions = {
  readonly order: RecallOrder
  readonly cause: RecallCause
  /** The time of the order, in epoch milliseconds. */
  readonly atMs: number
  /** Called when a message has ended, or the run has. */
  readonly onRoom: () => void
}

/**
 * One recall of a destination in this process. It begins with a few messages, and each that arrives makes
 * room for one more at a time. Each failure halves the room. When there is none left, the run is over, and
 * what it hasn't given by then keeps its rung. So a hook that is still down gets a few requests, and one
 * message that is refused again and again doesn't end a recall.
 */
export class Run {
  readonly order: RecallOrder
  readonly cause: RecallCause
  /** The time of the order, in epoch milliseconds. */
  readonly atMs: number
  /** The names of the partitions in which the end of the run is known. */
  readonly opened = new Set<string>()
  /** The number of partitions that the run still has to look through. */
  pending = 0
  readonly #onRoom: () => void
  #room: number
  #inHand = 0
  #given = 0

  constructor({ order, cause, atMs, onRoom }: RunOptions) {
    this.order = order
    this.cause = cause
    this.atMs = atMs
    this.#onRoom = onRoom
    // What is given up becomes dead letters, and no endpoint has to take it.
    this.#room = cause === 'dropped' ? mostRoom : firstRoom
  }

  /** True if one more message may be given to the pipeline. */
  get hasRoom(): boolean {
    return this.#inHand < this.#room
  }

  /** True if the pipeline holds none of the messages that were given to it. */
  get isIdle(): boolean {
    return this.#inHand === 0
  }

  /** True if the run is over, because too little of what it gave has arrived. */
  get hasFailed(): boolean {
    return this.#room === 0
  }

  /** The number of messages that were given to the pipeline. */
  get given(): number {
    return this.#given
  }

  /** Returns the record in the form in which the pipeline gets it. */
  give(record: HeldRecord): RecalledRecord {
    this.#given++
    this.#inHand++
    return new RecalledRecord(record, this)
  }

  ended(): void {
    this.#inHand--
    this.#onRoom()
  }

  delivered(): void {
    this.#room = Math.min(mostRoom, this.#room + 1)
  }

  failed(): void {
    this.#room = Math.floor(this.#room / 2)
    this.#onRoom()
  }
}

/**
 * The reasons that say that a message couldn't be delivered now, through no fault of its destination's
 * limits.
 */
const failures: ReadonlySet<ParkReason> = new Set<ParkReason>(['failed', 'not_before', 'paced', 'proxy'])

/** A record that was called back. */
export class RecalledRecord implements HeldRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestampMs: number
  readonly isLate = false
  readonly #record: HeldRecord
  readonly #run: Run

  constructor(record: HeldRecord, run: Run) {
    this.topic = record.topic
    this.partition = record.partition
    this.offset = record.offset
    this.timestampMs = record.timestampMs
    this.#record = record
    this.#run = run
  }

  get isAbandoned(): boolean {
    return this.#record.isAbandoned
  }

  get isElsewhere(): boolean {
    return this.#record.isElsewhere ?? false
  }

  get mayHaveBegun(): boolean {
    return this.#record.mayHaveBegun ?? false
  }

  get isReadAgain(): boolean {
    return this.#record.isReadAgain ?? false
  }

  get isReadAgainOver(): boolean {
    return this.#record.isReadAgainOver ?? true
  }

  settle(): void {
    this.#record.settle()
    this.#run.ended()
  }

  giveBack(): void {
    this.#record.giveBack()
    this.#run.ended()
  }

  delivered(): void {
    this.#run.delivered()
  }

  parked(why: ParkReason): void {
    if (failures.has(why)) this.#run.failed()
  }
}

/** Callbacks of the pipeline that tell the runs what became of their messages. */
export const recallObserver: Partial<PipelineObserver> = {
  delivered({ pending: { record } }) {
    if (record instanceof RecalledRecord) record.delivered()
  },
  parked({ pending: { record } }, why) {
    if (record instanceof RecalledRecord) record.parked(why)
  },
}
