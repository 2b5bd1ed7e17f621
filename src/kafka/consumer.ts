import type { Kafka, KafkaMessage } from 'kafkajs'
import { GroupMember } from './group-member.ts'
import type { OnTruncation } from './handover.ts'
import type { PartitionState } from './partition-state.ts'

/** A record on loan: it isn't committed past before `settle` is called. Call that or `giveBack`, once. */
export type InboundRecord = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** When the broker appended it, in epoch milliseconds. */
  readonly timestampMs: number
  /** It was taken long after it was there to be taken, or due: we are catching up. */
  readonly isLate: boolean
  /** True when the partition has moved to another member: start nothing more for it. */
  readonly isAbandoned: boolean
  /**
   * It is abandoned, and the next owner has not waited for us: it delivers all of it, whatever was done here.
   */
  readonly isElsewhere: boolean
  /**
   * An owner before this one left without a word, and may have begun with it. Told for topics with
   * `needsState` only, and rather too often than not.
   */
  readonly mayHaveBegun: boolean
  settle(): void
  /** Nothing is done with it here any more, and it isn't settled: the next owner gets it. */
  giveBack(): void
}

/** What a record holds: slices of a whole fetch. Keep none of them, or the fetch stays in memory. */
export type RecordContent = Pick<KafkaMessage, 'key' | 'value' | 'headers'> & {
  /** Why it and those just before it can't be read; there is neither key nor value then. */
  readonly unreadable?: string
}

export type TopicSubscription = {
  topic: string
  /** How long a record waits after its append, in milliseconds. */
  waitMs: number
  /** A partition is begun only once `prepare` has resolved for its unit. */
  needsState?: boolean
  /**
   * Only the watermark is committed, not what is settled above it: whoever comes next reads all of that
   * again. In return nothing stops the fetching when records far apart are out.
   */
  hasWindow?: false
}

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
   * Of a static member: through a restart within its session it keeps its partitions, and nobody else
   * notices.
   */
  instanceId?: string | undefined
  /** Leave the group when a static member stops, so that its partitions move at once. Default: no. */
  leaveOnStop?: boolean
  /**
   * Whether a member with this instance id was a process of this worker, for which there is none any more: it
   * is taken out.
   */
  isFormerProcess?: ((instanceId: string) => boolean) | undefined
  /** Of each topic, so many are shared out: what there is beyond is not begun. */
  partitions: number
  /** What is done where a partition isn't the log that was read before. */
  onTruncation: OnTruncation
  sessionTimeoutMs: number
  commitIntervalMs: number
  /** How long the owner before of a partition may need to finish what it has in flight. */
  handoverMs: number
  topics: readonly TopicSubscription[]
  /** Takes one record. Must not throw, and must not wait. */
  onRecord: (record: InboundRecord, content: RecordContent) => void
  /** Told after each join which partition numbers are ours. Records of others are abandoned from then on. */
  onAssigned: (units: readonly number[]) => void
  /**
   * Makes the state of a unit ready for the topics with `needsState`: called when all of its owners before
   * are done with those, once for as long as the unit is ours. Where it rejects it is called again a second
   * later.
   */
  prepare?: (unit: number) => Promise<void>
  /**
   * Told once after a `prepare`, which may still be under way (it should then come to its end): the unit was
   * lost, nothing of it is out any more and the last commit is made; or the time for that, `handoverMs`, is
   * over; or the member stops. The unit is prepared anew only when both this promise and that of `prepare`
   * are settled.
   */
  released?: (unit: number) => void | Promise<void>
  /** Records were deleted before they were settled: about so many. */
  onLost?: (topic: string, count: number) => void
  /** The log of a partition ends before what was read of it, or is another one. */
  onTruncated?: (topic: string) => void
  /** A commit was refused, or never came; it is tried again. */
  onCommitFailed?: () => void
  /** Told after each join but the first. */
  onRebalanced?: () => void
  /** Nothing was heard of the group for a session, or something was heard again. */
  onSilent?: (isSilent: boolean) => void
  /** The group will never take this member. */
  onFatal: (error: Error) => void
  log: ConsumerLog
}

export type GroupConsumer = {
  /** True while the group knows this member, and it has begun with all that it was given. */
  readonly isJoined: boolean
  /**
   * Whether the partitions are ours by the clock: false once nothing was heard of the group for a session, as
   * after a process was stopped for so long. Then nothing may be begun: others may have begun it.
   */
  checkInTouch(): boolean
  /** Partitions wait: what it had begun before it was started again may still be under way. */
  readonly isResting: boolean
  /** What keeps partitions from being read, and who is in the group that shouldn't be, in words. */
  readonly obstacles: readonly string[]
  /** Partitions of ours that can't be read now, by topic. */
  readonly troubled: ReadonlyMap<string, number>
  /** Units whose state isn't ready yet: one reason for not being joined. Ascending. */
  readonly preparing: readonly number[]
  /** How each partition of ours stands at the moment of the question. */
  readonly partitions: Iterable<PartitionState>
  /**
   * Epoch milliseconds of when all that had settled was last known to be committed; 0 before the first time.
   */
  readonly lastCommitMs: number
  /** Stops and starts fetching; membership goes on. */
  setFull(isFull: boolean): void
  /** Stops and starts fetching from partitions that are behind; the others go on. */
  setCongested(isCongested: boolean): void
  /**
   * Stops and starts fetching from one partition; what was fetched of it already still comes. Of a partition
   * that isn't ours nothing happens, and what was set ends with the ownership. It is stopped for as long as
   * one of the holders wants it.
   */
  setPartitionFull(topic: string, id: number, isFull: boolean, holder?: string): void
  /**
   * When one of our partitions was last known to have no record beyond those that were taken, in epoch
   * milliseconds; 0 while that isn't known. Looked at every few seconds.
   */
  endSeenMs(topic: string, id: number): number
  /** Takes no further record; what was taken can still settle and be committed. */
  quiesce(): void
  /** Commits what has settled. Throws when the broker refuses or can't be reached. */
  commit(): Promise<void>
  /** Leaves the group, unless it is a static member, and waits until all units are released. Commit first. */
  stop(): Promise<void>
}

/**
 * One member of the consumer group. Resolves once the brokers have told about the topics: whether the group
 * has taken it is `isJoined`.
 */
export async function startConsumer(options: ConsumerOptions): Promise<GroupConsumer> {
  const member = new GroupMember(options)
  await member.start()
  return member
}
