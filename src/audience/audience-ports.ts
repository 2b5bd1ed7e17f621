import type { AudienceDeadReason } from '../message/dead-letter-reasons.ts'
import type { HeldRecord, RecordContent } from '../message/held-record.ts'
import type { KeyedRecord, OutboundRecord } from '../message/records.ts'

/** An Identify that Sluice sends because of a record of `memberships`. */
export type Identify = {
  readonly kind: 'identify'
  readonly spaceId: string
  readonly userId: string
  readonly property: string
  readonly since: string
  readonly messageId: string
  readonly body: Buffer
  /**
   * True if the Identify's value is out of date, because a newer value is already known. A previous owner of
   * the unit may still have sent requests with the old value. The server may act on such a request late. So
   * the Identify isn't sent, and waits until no request can take effect any more, like an Identify whose
   * outcome is uncertain. After that wait, Sluice sends the newer value if necessary.
   */
  readonly isSuperseded: boolean
}

/** The messages of a deletion request: a `delete` for each affected source. */
export type DeleteRequest = {
  readonly userId: string
  readonly deletes: readonly {
    readonly sourceId: string
    readonly messageId: string
    readonly body: Buffer
  }[]
}

/** A record of `memberships`. */
export type LoggedState = Omit<KeyedRecord, 'timestampMs'>

export type SpaceStanding = 'enabled' | 'disabled' | 'unknown' | 'no_space'

/**
 * The outcome of a change. A record of `memberships` was written if the outcome is `changed` (a new value) or
 * `confirmed` (a newer version of the same value).
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
  /** The number of users in the sync for whom nothing had to be written. */
  readonly unchanged: number
  readonly tookMs: number
}

export type RestoreReport = {
  readonly unit: number
  /**
   * The reason why the unit's store on disk could not be used; `undefined` if the store was used, or if there
   * was no store.
   */
  readonly mistrust: string | undefined
  /** The number of records of `memberships` that the restore read. */
  readonly records: number
  readonly tookMs: number
}

/**
 * The progress of a unit's restore: the number of records that were read so far, and the offsets at which the
 * restore starts (`from`), is now (`at`) and ends (`end`).
 */
export type RestoreProgress = {
  readonly unit: number
  readonly records: number
  readonly from: number
  readonly at: number
  readonly end: number
}

/** Callbacks for metrics and logs. */
export type AudienceObserver = {
  changed(outcome: ChangeOutcome, spaceId: string): void
  synced(report: SyncReport): void
  /** Called when a sync is refused. All parts of the sync that have arrived go to the dead letters. */
  syncRefused(
    sync: Pick<SyncReport, 'unit' | 'spaceId' | 'audienceId' | 'syncId'>,
    reason: AudienceDeadReason,
  ): void
  restored(report: RestoreReport): void
  /**
   * Called when an Identify was not sent, because a newer value is known (`superseded`) or because the user
   * has been deleted (`suppressed`).
   */
  notSent(why: 'superseded' | 'suppressed'): void
}

/** The calls that the units make to the rest of Sluice. */
export type AudiencePorts = {
  spaceOf(sourceId: string): SpaceStanding
  /**
   * Writes a record of `memberships`. Resolves with the record's offset once all in-sync replicas have the
   * record. While Kafka is unavailable, waits without a limit. `refused`: the broker will never accept the
   * record.
   */
  writeState(record: {
    readonly partition: number
    readonly key: Buffer
    readonly value: Buffer | null
  }): Promise<number | 'refused'>
  /** Writes a record of `audience-changes` or `deletions` to the partition of its user. */
  move(record: OutboundRecord): Promise<'acknowledged' | 'refused'>
  /**
   * Reads the unit's partition of `memberships`, from an offset to the end that the partition has at the time
   * of the call.
   */
  readStates(unit: number, from: number): AsyncIterable<readonly LoggedState[]>
  /**
   * Returns the offsets between which the unit's partition of `memberships` has records: the first offset
   * that still exists, and the offset after the last record.
   */
  rangeOfStates(unit: number): Promise<{ readonly start: number; readonly end: number }>
  /**
   * Returns true if the unit's partition of `memberships` has lost records below `position`, and may have
   * other records at their offsets. `leaderEpoch` is the epoch of the leader that appended the last known
   * record.
   */
  haveStatesDiverged(unit: number, position: number, leaderEpoch: number): Promise<boolean>
  /**
   * Returns the append time of the oldest remaining record in the unit's partition of `memberships`, in epoch
   * milliseconds by the broker's clock. Returns `undefined` if there is no record.
   */
  firstStateMs(unit: number): Promise<number | undefined>
  /**
   * Takes over the record from the caller, and settles the record once its Identify has been delivered or has
   * become a retry or a dead letter.
   */
  deliver(record: HeldRecord, identify: Identify): void
  /**
   * Takes over the record from the caller. For each source of the request, sends a `delete` to each of the
   * source's destinations (`Entrance.deletion` in `src/pipeline/entrance.ts`).
   */
  deliverDelete(record: HeldRecord, request: DeleteRequest): void
  /** Takes over the record from the caller, and writes it to the dead letters. */
  refuse(record: HeldRecord, content: RecordContent, reason: AudienceDeadReason, detail: string): void
  /** Stops or starts the fetching of one partition. Records that have already been fetched still arrive. */
  setUnitFull(topic: string, unit: number, isFull: boolean): void
  /**
   * Returns the last time, in epoch milliseconds by this machine's clock, at which the audience code was up
   * to date: it had received every record in the unit's partition of `audience-changes`. Returns 0 if no such
   * time is known.
   */
  endSeenMs(unit: number): number
  /** Ends the program, because the state of a unit can't be kept correctly any more. */
  fatal(error: Error): void
  /** Returns the present time in epoch milliseconds. */
  now(): number
  monotonicMs(): number
  readonly observer: AudienceObserver
}
