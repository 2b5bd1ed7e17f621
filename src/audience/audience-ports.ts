import type { AudienceDeadReason } from '../message/dead-letter-reasons.ts'
import type { HeldRecord, RecordContent } from '../message/held-record.ts'

/** The Identify that a record of `memberships` causes. */
export type Identify = {
  readonly kind: 'identify'
  readonly spaceId: string
  readonly userId: string
  readonly property: string
  readonly since: string
  readonly messageId: string
  readonly body: Buffer
  /**
   * True if a newer value is already known, and a previous owner may have started the record. A request of
   * that owner may still take effect late. So this Identify waits as long as an uncertain one, and is judged
   * when it is due.
   */
  readonly isSuperseded: boolean
}

/** A deletion request: a `delete` for each affected source. */
export type DeleteRequest = {
  readonly userId: string
  readonly deletes: readonly {
    readonly sourceId: string
    readonly messageId: string
    readonly body: Buffer
  }[]
}

/** A record of `memberships`. */
export type LoggedState = {
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer | null
}

export type SpaceStanding = 'enabled' | 'disabled' | 'unknown' | 'no_space'

/**
 * The outcome of a change. A record was written for `changed`, and for `confirmed` (a newer version of the
 * same value).
 */
export type ChangeOutcome =
  | 'changed'
  | 'confirmed'
  | 'repeated'
  | 'outdated'
  | 'deleted'
  | 'moved'
  | 'space_disabled'

export type SyncReport = {
  readonly unit: number
  readonly spaceId: string
  readonly audienceId: string
  readonly syncId: string
  readonly joined: number
  readonly left: number
  /** The number of users of the sync for whom nothing had to be written. */
  readonly unchanged: number
  readonly tookMs: number
}

export type RestoreReport = {
  readonly unit: number
  /** The reason why the store on disk could not be used; `undefined` if it was used, or if there was none. */
  readonly mistrust: string | undefined
  /** The number of records of `memberships` that were read. */
  readonly records: number
  readonly tookMs: number
}

/** The progress of a unit's restore: the records read so far, and the offsets between which it reads. */
export type RestoreProgress = {
  readonly unit: number
  readonly records: number
  readonly from: number
  readonly at: number
  readonly end: number
  readonly startedMs: number
}

/** Callbacks for metrics and logs. */
export type AudienceObserver = {
  changed(outcome: ChangeOutcome, spaceId: string): void
  synced(report: SyncReport): void
  /** Called when a sync is refused: all its parts that have arrived go to the dead letters. */
  syncRefused(
    sync: Pick<SyncReport, 'unit' | 'spaceId' | 'audienceId' | 'syncId'>,
    reason: AudienceDeadReason,
  ): void
  restored(report: RestoreReport): void
  /** Called when an Identify was not sent, because a newer value is known or the user was deleted since. */
  notSent(why: 'superseded' | 'suppressed'): void
}

/** The calls that the units make to the rest of Sluice. */
export type AudiencePorts = {
  spaceOf(sourceId: string): SpaceStanding
  /**
   * Writes a record of `memberships`. Resolves with its offset once all in-sync replicas have it, and waits
   * for as long as Kafka is away. `refused`: the broker will never accept the record.
   */
  writeState(record: {
    readonly partition: number
    readonly key: Buffer
    readonly value: Buffer | null
  }): Promise<number | 'refused'>
  /** Writes a record of `audience-changes` or `deletions` to the partition that it belongs to. */
  move(record: {
    readonly topic: string
    readonly partition: number
    readonly key: Buffer
    readonly value: Buffer
    readonly headers: Readonly<Record<string, string>>
  }): Promise<'acknowledged' | 'refused'>
  /** Reads the unit's `memberships` from an offset to the end that the log has at the time of the call. */
  readStates(unit: number, from: number): AsyncIterable<readonly LoggedState[]>
  /**
   * Returns the first offset of the unit's `memberships` that still exists, and the offset after the last
   * record.
   */
  rangeOfStates(unit: number): Promise<{ readonly start: number; readonly end: number }>
  /**
   * Returns when the oldest remaining record of the unit's `memberships` was appended, in epoch milliseconds
   * by the broker's clock; `undefined` if there is no record.
   */
  firstStateMs(unit: number): Promise<number | undefined>
  /** Takes over the record, and settles it once the Identify is settled. */
  deliver(record: HeldRecord, identify: Identify): void
  /**
   * Takes over the record, and makes one `delete` for each destination of each of its sources
   * (`Entrance.deletion` in `src/pipeline/entrance.ts`).
   */
  deliverDelete(record: HeldRecord, request: DeleteRequest): void
  /** Takes over the record, and writes it to the dead letters. */
  refuse(record: HeldRecord, content: RecordContent, reason: AudienceDeadReason, detail: string): void
  /** Stops or starts fetching of one partition. Records that are already fetched still arrive. */
  setUnitFull(topic: string, unit: number, isFull: boolean): void
  /**
   * Returns a time, in epoch milliseconds by this machine's clock: all records that the unit's
   * `audience-changes` had at that time have been handed over here. It is the latest such time that is known;
   * 0 while none is known.
   */
  endSeenMs(unit: number): number
  /** Ends the program, because the state can't be kept any more. */
  fatal(error: Error): void
  /** Returns the time in epoch milliseconds. */
  now(): number
  readonly observer: AudienceObserver
}
