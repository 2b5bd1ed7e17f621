import type { Kafka } from 'kafkajs'
import type { OnTruncation } from './beginning.ts'
import type { PartitionState } from '../partitions/partition-state.ts'
import type { EarlyPartition } from '../partitions/early-partition.ts'
import type { PassedOn } from '../partitions/passed-on.ts'
import type { PulledPartition } from '../partitions/pulled-partition.ts'
import type { HeldRecord, RecordContent } from '../../message/held-record.ts'
import type { TopicSubscription } from '../partitions/topic-subscription.ts'

export type ConsumerLog = {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export type ConsumerOptions = {
  kafka: Kafka
  groupId: string
  /**
   * The id of a static member. If the member restarts within the session timeout, it keeps its partitions,
   * and the group doesn't rebalance.
   */
  instanceId?: string | undefined
  /**
   * If true, a static member leaves the group when it stops, so that its partitions move at once. Default:
   * false.
   */
  leaveOnStop?: boolean
  /**
   * Returns true if an instance id belonged to a former process of this worker. The former process no longer
   * exists, because the worker now runs fewer processes. The member then removes this id from the group.
   */
  isFormerProcess?: ((instanceId: string) => boolean) | undefined
  /**
   * How many partitions of each topic the group assigns to its members. Partitions beyond this number are not
   * read.
   */
  partitions: number
  /** The rule for a partition whose log has been replaced by another log. */
  onTruncation: OnTruncation
  sessionTimeoutMs: number
  commitIntervalMs: number
  /**
   * The time that the previous owner of a partition may need to finish what it has in flight, in
   * milliseconds.
   */
  handoverMs: number
  topics: readonly TopicSubscription[]
  /** Takes one record. Must not throw, and must not wait. */
  onRecord: (record: HeldRecord, content: RecordContent) => void
  /**
   * Called after each join with the partition numbers of this member. Records of partitions with other
   * numbers are abandoned from then on. Also called when this member loses its partitions, or when it starts
   * some of its partitions again. `generation` is the group's generation of this assignment. `undefined`: the
   * member is out of the group.
   */
  onAssigned: (units: readonly number[], generation: number | undefined) => void
  /**
   * Makes the state of a unit ready for the topics with `needsState`. Called once in each tenure of the unit,
   * when all previous owners have finished these topics. If the promise rejects, `prepare` is called again a
   * second later.
   */
  prepare?: (unit: number) => Promise<void>
  /**
   * Called once for each lost unit for which `prepare` was called. Called when the unit has nothing in flight
   * and is committed. Called earlier if `handoverMs` has passed since the loss of the unit, or if the member
   * stops. `prepare` may still be running, and should then end. `prepare` is called again for the unit only
   * after the promises of both functions have ended.
   */
  released?: (unit: number) => void | Promise<void>
  /**
   * Called when a partition of a topic with `notesPassedOn` begins, if it is known which of its records
   * former owners have passed on. The partition's first record is taken when the promise has ended. Without
   * this option, no partition notes what was passed on.
   */
  onInherited?: (passedOn: PassedOn) => Promise<void>
  /** Called when records were deleted before they were settled. `count` is approximate. */
  onLost?: (topic: string, count: number) => void
  /**
   * Called when the log of a partition isn't the log that was read before. The present log ends before the
   * last record that was read, or it has other records.
   */
  onTruncated?: (topic: string) => void
  /** Called when a commit was refused, or got no answer. The commit is tried again. */
  onCommitFailed?: () => void
  /** Called after each join except the first. */
  onRebalanced?: () => void
  /**
   * Called when nothing was heard from the group for a session timeout, and when something is heard again.
   */
  onSilent?: (isSilent: boolean) => void
  /** Called when it is certain that the group will never accept this member. */
  onFatal: (error: Error) => void
  log: ConsumerLog
}

export type GroupConsumer = {
  /**
   * True while the group knows this member, and the member has started all partitions that it was given. A
   * partition that can't be read now counts as started. Only if it is stopped because its log was replaced by
   * another log, this is false.
   */
  readonly isJoined: boolean
  /** True if the group knows this member, and has answered this member within the session timeout. */
  readonly isMember: boolean
  /**
   * Returns true if, by the clock, this member still owns its partitions. Returns false once nothing was
   * heard from the group for a session timeout, for example after the process was suspended. The member may
   * then start nothing, because other members may have started the same records.
   */
  checkInTouch(): boolean
  /**
   * True while partitions wait because this process replaces a killed process. Requests of the killed process
   * may still be in flight.
   */
  readonly isWaitingForPredecessor: boolean
  /** Texts about stopped partitions, and about members that shouldn't be in the group. */
  readonly obstacles: readonly string[]
  /** The number of this member's partitions that can't be read now, by topic. */
  readonly troubled: ReadonlyMap<string, number>
  /** Units whose state isn't ready yet, ascending. They are one reason why `isJoined` is false. */
  readonly preparing: readonly number[]
  /** The present state of each partition of this member. */
  readonly partitions: Iterable<PartitionState>
  /**
   * The latest time, in epoch milliseconds, for which this is known: all records that had settled at the time
   * have been committed. 0 while no such time is known.
   */
  readonly lastCommitMs: number
  /**
   * If `isFull` is true, stops fetching from all partitions. Otherwise, starts fetching again. The member
   * stays in the group.
   */
  setFull(isFull: boolean): void
  /**
   * If `isCongested` is true, stops fetching from the partitions that have a backlog. Otherwise, starts
   * fetching again.
   */
  setCongested(isCongested: boolean): void
  /**
   * If `isFull` is true, stops fetching from one partition. Otherwise, starts fetching again. Records that
   * were fetched already are still passed to `onRecord`. Ignores a partition that this member doesn't own.
   * Forgets the setting when the partition is lost. `holder` names the part of the worker that makes this
   * call. The partition stays stopped until each part that stopped it has started it again.
   */
  setPartitionFull(topic: string, id: number, isFull: boolean, holder?: string): void
  /**
   * Returns the latest time, in epoch milliseconds, for which this is known: all records that the partition
   * had at the time have been taken. Returns 0 while no such time is known. The end of the log is looked up
   * every few seconds.
   */
  endSeenMs(topic: string, id: number): number
  /**
   * Returns this member's partition of a topic with `isPulled`. Returns `undefined` if this member doesn't
   * own it. After the partition was lost or started again, this function returns another object.
   */
  pulled(topic: string, id: number): PulledPartition | undefined
  /**
   * Returns this member's partition of a retry topic, whose records can be taken before their wait is over.
   * Returns `undefined` if this member doesn't own the partition, or hasn't started it. After the partition
   * was lost or started again, this function returns another object.
   */
  early(topic: string, id: number): EarlyPartition | undefined
  /** Takes no further record. Records that were taken before can still settle and be committed. */
  quiesce(): void
  /** Commits all that has settled. Throws when the broker refuses the commit or can't be reached. */
  commit(): Promise<void>
  /**
   * Leaves the group, and waits until all units are released. A static member leaves the group only with
   * `leaveOnStop`. Call `commit` before this method.
   */
  stop(): Promise<void>
}
