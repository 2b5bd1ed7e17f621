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
   * A newer value is known already. Only said of a record that an owner before may have begun: what it sent
   * may land late, so that this one has to wait as an uncertain one, and is judged when it is due.
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

/** One record of `memberships`. */
export type LoggedState = {
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer | null
}

export type SpaceStanding = 'enabled' | 'disabled' | 'unknown' | 'no_space'

/** What a change came to. `changed` and `confirmed` (a newer version of the same value) wrote a record. */
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
  /** Users of the sync whose state was as it says. */
  readonly unchanged: number
  readonly tookMs: number
}

export type RestoreReport = {
  readonly unit: number
  /** Why what was on disk could not be used; `undefined` where it was, or nothing was there. */
  readonly mistrust: string | undefined
  /** Records of `memberships` that were read. */
  readonly records: number
  readonly tookMs: number
}

/** How far the restoring of a unit is: records read, and the offsets between which it reads. */
export type RestoreProgress = {
  readonly unit: number
  readonly records: number
  readonly from: number
  readonly at: number
  readonly end: number
  readonly startedMs: number
}

/** Hears what happens, for metrics and logs. */
export type AudienceObserver = {
  changed(outcome: ChangeOutcome, spaceId: string): void
  synced(report: SyncReport): void
  /** All parts of the sync that are here go to the dead letters. */
  syncRefused(
    sync: Pick<SyncReport, 'unit' | 'spaceId' | 'audienceId' | 'syncId'>,
    reason: AudienceDeadReason,
  ): void
  restored(report: RestoreReport): void
  /** An Identify was not sent: a newer value is known, or the user was deleted since. */
  notSent(why: 'superseded' | 'suppressed'): void
}

/** What the units need of the rest. */
export type AudiencePorts = {
  spaceOf(sourceId: string): SpaceStanding
  /**
   * Writes a record of `memberships`. Gives its offset once all in-sync replicas have it; waits for as long
   * as Kafka is away. `refused`: the broker never takes it.
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
  /** `memberships` of the unit, from an offset to the end as of the call. */
  readStates(unit: number, from: number): AsyncIterable<readonly LoggedState[]>
  /** The first offset of the unit's `memberships` that is there, and the one after the last. */
  rangeOfStates(unit: number): Promise<{ readonly start: number; readonly end: number }>
  /**
   * When the first record that is left of the unit's `memberships` was appended, in epoch milliseconds by the
   * broker's clock; `undefined`: there is none.
   */
  firstStateMs(unit: number): Promise<number | undefined>
  /** Takes over the record, and what is owed for it. */
  deliver(record: HeldRecord, identify: Identify): void
  deliverDelete(record: HeldRecord, request: DeleteRequest): void
  /** Takes over the record: it goes to the dead letters. */
  refuse(record: HeldRecord, content: RecordContent, reason: AudienceDeadReason, detail: string): void
  /** Stops and starts fetching of one partition. What was fetched still comes. */
  setUnitFull(topic: string, unit: number, isFull: boolean): void
  /**
   * When `audience-changes` of the unit was last seen to have no record beyond those that were handed over
   * here, in epoch milliseconds by our clock; 0 while unknown. That is the time at which a fetch was begun
   * that found none.
   */
  endSeenMs(unit: number): number
  /** State can't be kept any more: the program has to end. */
  fatal(error: Error): void
  /** Epoch milliseconds. */
  now(): number
  readonly observer: AudienceObserver
}
