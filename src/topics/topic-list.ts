import type { KafkaRole } from './kafka-roles.ts'

/**
 * The rule by which a topic keeps records:
 *
 * - With `forMs` alone, the topic keeps all records for this time.
 * - With `latestOfKey` and `forMs`, the topic keeps the latest record of each key for this time.
 * - With `latestOfKey` and without `forMs`, the topic keeps the latest record of each key forever. Compaction
 *   doesn't remove records younger than `noneBeforeMs`, because they may not be delivered yet. The deletion
 *   of a key stays readable for `deletionsForMs`.
 */
export type Keeping =
  | { forMs: number }
  | { latestOfKey: true; noneBeforeMs: number; deletionsForMs: number }
  | { latestOfKey: true; forMs: number }

const day = 24 * 3_600_000
/**
 * The retention of topics that upstream services write, in milliseconds. If an outage of Sluice takes at most
 * this time, no record is lost.
 */
const sourceKeptMs = 7 * day
const kibi = 1024
/**
 * The shortest time for which the deletion of a key stays in `memberships`, in milliseconds. A store whose
 * last checkpoint is older than this time has to read the whole topic again.
 */
export const deletionsKeptMs = 30 * day
/**
 * The retention of `waiting`, in milliseconds. A paused destination's messages wait for as long as this, and
 * then become dead letters.
 */
export const waitingKeptMs = 30 * day
/** The retention of `lending`, in milliseconds. Its records have a meaning for seconds only. */
const lendingKeptMs = 3_600_000
/**
 * The retention of `replay-jobs`, whose records say who replayed what. A replay ends long before its record
 * is deleted, because the records that the replay reads are kept for at most two weeks.
 */
const replayJobsKept = { latestOfKey: true, forMs: 90 * day } as const
/** The retention of `catalog-history` by default, in milliseconds. */
const historyKeptByDefaultMs = 365 * day
/**
 * The largest batch that a topic takes by Kafka's default, in bytes. Producers may rely on this size, so no
 * topic here takes less.
 */
const kafkaDefaultBytes = 1_048_588
const batchHeaderBytes = 12
/**
 * The room for headers in addition to the message, in bytes. The headers of retried records and dead letters
 * have limits, so they fit into this room.
 */
const headersBytes = 64 * kibi

/**
 * Returns the size of the largest record of `events`, in bytes. The largest message that Sluice takes fits
 * into such a record. The size is at least Kafka's default.
 */
function maxSourceBytes(maxMessageBytes: number): number {
  return Math.max(kafkaDefaultBytes, maxMessageBytes + batchHeaderBytes)
}

/**
 * Returns the size of the largest record of the retry topics and the dead letters, in bytes. Every message
 * that Sluice takes fits into such a record.
 */
export function maxRetryRecordBytes(maxMessageBytes: number): number {
  return maxSourceBytes(maxMessageBytes) + headersBytes
}

/**
 * Returns the retention of records on Sluice's own topics, in milliseconds. When an outage begins, a record
 * may already have waited for all of its retries. This record must still exist when the oldest record of
 * `events` is read after the outage. So this retention is at least a day longer than the retention of
 * `events`. The extra day is the time to catch up.
 */
function retryKeptMs(retryLimitMs: number): number {
  return sourceKeptMs + Math.max(day, retryLimitMs)
}

/** The settings on which the retention of a topic depends, in milliseconds. */
type KeptBy = {
  readonly retryLimitMs: number
  readonly attemptsKeptMs: number
  readonly historyKeptMs?: number
}

/** A topic, with all that the code and the documentation know of it. */
export type Topic = {
  /** The topic's name after the prefix. */
  readonly name: string
  readonly purpose: string
  /** A text for the documentation. It says what the key of a record of this topic is. */
  readonly key: string
  readonly kept: (by: KeptBy) => Keeping
  /**
   * Returns the size of the largest batch that the topic takes, in bytes. `maxMessageBytes` is the size of
   * the largest message that is delivered.
   */
  readonly maxBytes: (maxMessageBytes: number) => number
  readonly readers: readonly KafkaRole[]
  readonly writers: readonly KafkaRole[]
  /**
   * The way in which the workers' consumer group reads the topic. Absent if the group doesn't read the topic.
   */
  readonly subscription?: {
    /** True if commits say which settled records went nowhere. */
    readonly notesPassedOn?: true
    /** True if records of the topic wait until the state of their unit is read. */
    readonly needsState?: true
    /** False if a commit has only the watermark, without the settled offsets above it. */
    readonly hasWindow?: false
    /**
     * True if the group only assigns and commits the topic. The queues of destinations read it themselves.
     */
    readonly isPulled?: true
  }
  /** True if upstream services write the topic. Its values may begin with the schema id of a registry. */
  readonly isFramed?: true
  /**
   * True if only Sluice writes the topic, and its records belong to units. `sluice topics grow` replaces the
   * topic by a new topic.
   */
  readonly isOwn?: true
  /**
   * True if there is a topic for each tier of the ladder. `name` is then the beginning of the names of these
   * topics.
   */
  readonly tiers?: true
  /** True if the topic belongs to no unit, and has one partition. */
  readonly hasOnePartition?: true
  /**
   * True if deliveries don't depend on this topic. A role that can't use the topic logs this and starts
   * anyway.
   */
  readonly isOptional?: true
  /** True if the topic exists only with `catalog.source=topic`. */
  readonly isOfCatalog?: true
}

const kafkaDefault = (): number => kafkaDefaultBytes
const worker = ['worker', 'up'] as const
const sync = ['audience sync', 'audience sync --allow-leaving'] as const
const asSource = (): Keeping => ({ forMs: sourceKeptMs })
const asRetry = ({ retryLimitMs }: KeptBy): Keeping => ({ forMs: retryKeptMs(retryLimitMs) })

/**
 * The table of topics. Names (`topicNames`), layout (`topicTable`), the subscriptions of the group, the
 * rights of each role, `docs/topics.md` and `docs/acls.md` derive from it.
 */
export const topics = {
  events: {
    name: 'events',
    purpose: 'analytics events, as upstream services produce them',
    key: '`userId`, else `anonymousId`',
    kept: asSource,
    maxBytes: maxSourceBytes,
    readers: [...worker, 'replay', 'admin', 'log find'],
    // A worker writes notices.
    writers: [...worker, 'gateway', 'send'],
    subscription: { notesPassedOn: true },
    isFramed: true,
  },
  audienceChanges: {
    name: 'audience-changes',
    purpose: 'changes of audiences and computed traits, as upstream services produce them',
    key: '`userId`',
    kept: asSource,
    maxBytes: maxSourceBytes,
    readers: worker,
    // If a change came to the wrong partition, a worker writes it to the right partition. For a replay, a
    // worker writes refused changes and requests to their topics again.
    writers: [...worker, 'gateway', ...sync, 'audience change'],
    subscription: { needsState: true, hasWindow: false },
    isFramed: true,
  },
  deletions: {
    name: 'deletions',
    purpose: 'requests to delete a user',
    key: '`userId`',
    kept: asSource,
    maxBytes: maxSourceBytes,
    readers: [...worker, 'log find'],
    writers: [...worker, 'gateway'],
    subscription: { needsState: true },
    isFramed: true,
  },
  memberships: {
    name: 'memberships',
    purpose: 'the values of audiences and computed traits. Workers deliver each new value from this topic',
    key: 'a JSON list of user, space and property. For a floor, it is user and source, or space and audience',
    kept: () => ({ latestOfKey: true, noneBeforeMs: sourceKeptMs, deletionsForMs: deletionsKeptMs }),
    maxBytes: maxRetryRecordBytes,
    readers: [...worker, 'log find', 'audience sync', 'audience backfill'],
    writers: worker,
    subscription: { needsState: true },
    isOwn: true,
  },
  retryPrefix: {
    name: 'retry.',
    purpose: 'deliveries to try again after',
    key: 'the key of the record that the delivery began with',
    kept: asRetry,
    maxBytes: maxRetryRecordBytes,
    readers: worker,
    writers: worker,
    subscription: { needsState: true },
    isOwn: true,
    tiers: true,
  },
  replays: {
    name: 'replays',
    purpose: 'deliveries that a replay, a backfill or a first sync has asked for',
    key: 'the key of the record that the delivery began with',
    kept: asRetry,
    maxBytes: maxRetryRecordBytes,
    readers: worker,
    writers: [...worker, 'audience backfill'],
    subscription: { needsState: true },
    isOwn: true,
  },
  waiting: {
    name: 'waiting',
    purpose: 'deliveries that wait for their turn, because their destination is paused or at its limits',
    key: 'the key of the record that the delivery began with',
    kept: () => ({ forMs: waitingKeptMs }),
    maxBytes: maxRetryRecordBytes,
    readers: worker,
    writers: worker,
    subscription: { needsState: true, hasWindow: false, isPulled: true },
    isOwn: true,
  },
  waitingMarks: {
    name: 'waiting-marks',
    purpose: 'which records of `waiting` are done, and whose they are',
    key: 'the id of the topic `waiting`, the kind of the mark, its writer and the block of offsets',
    kept: () => ({ latestOfKey: true, noneBeforeMs: 0, deletionsForMs: day }),
    maxBytes: kafkaDefault,
    readers: worker,
    writers: worker,
    isOwn: true,
  },
  deadLetters: {
    name: 'dead-letters',
    purpose: 'deliveries that ended without success and records that can not be used, with the reason',
    key: 'the key of the record that was refused or not delivered',
    kept: () => ({ forMs: 14 * day }),
    maxBytes: maxRetryRecordBytes,
    // A replay reads dead letters.
    readers: [...worker, 'replay', 'admin'],
    writers: worker,
  },
  backfills: {
    name: 'backfills',
    purpose:
      'which destinations have missed a value of an audience and need a backfill, and the progress of first syncs and of `sluice topics grow`',
    key: 'a JSON list that names the subject of the record',
    kept: () => ({ latestOfKey: true, noneBeforeMs: 0, deletionsForMs: day }),
    maxBytes: kafkaDefault,
    readers: [...worker, 'topics apply', 'topics check', ...sync, 'audience backfill'],
    writers: [...worker, 'audience backfill'],
    hasOnePartition: true,
  },
  attempts: {
    name: 'attempts',
    purpose: 'the delivery log, which says what became of each delivery',
    key: 'the partition of the record with the message',
    kept: ({ attemptsKeptMs }) => ({ forMs: attemptsKeptMs }),
    maxBytes: kafkaDefault,
    readers: ['up', 'log serve', 'log tail', 'admin'],
    writers: worker,
    isOptional: true,
  },
  replayJobs: {
    name: 'replay-jobs',
    purpose: 'the requests for replays, who made them, and their progress',
    key: 'a JSON list of the replay and the part of it that the record contains',
    kept: () => replayJobsKept,
    maxBytes: kafkaDefault,
    readers: [...worker, 'replay', 'admin'],
    // `sluice destinations` writes here who has resumed a destination or had its messages tried.
    writers: [...worker, 'replay', 'destinations', 'catalog', 'admin'],
    hasOnePartition: true,
  },
  notices: {
    name: 'notices',
    purpose:
      'what workers report about destinations, which notices were sent, which destinations Sluice has paused, and orders to try messages now',
    key: 'a JSON list. It names the worker that reports, or a notice, a pause or an order and its destination',
    kept: () => ({ latestOfKey: true, noneBeforeMs: 0, deletionsForMs: day }),
    maxBytes: kafkaDefault,
    readers: [...worker, 'destinations', 'status', 'admin'],
    writers: [...worker, 'destinations', 'admin'],
    hasOnePartition: true,
    isOptional: true,
  },
  lending: {
    name: 'lending',
    purpose:
      'which parts of the rate limits of destinations workers need, and lend to each other for seconds',
    key: '`0`',
    kept: () => ({ forMs: lendingKeptMs }),
    maxBytes: kafkaDefault,
    readers: worker,
    writers: worker,
    hasOnePartition: true,
    isOptional: true,
  },
  health: {
    name: 'health',
    purpose:
      'which URLs fail, how much waits of each destination, and how much its endpoint takes, as far as each worker process knows it',
    key: 'a JSON list. It names a worker process, or a destination and the worker process that knows it',
    kept: () => ({ latestOfKey: true, forMs: day }),
    maxBytes: kafkaDefault,
    readers: [...worker, 'destinations', 'status', 'admin', 'log find'],
    writers: worker,
    hasOnePartition: true,
    isOptional: true,
  },
  catalog: {
    name: 'catalog',
    purpose: 'the sources and destinations, if `catalog.source` is `topic`',
    key: '`source/ID`, `destination/ID`, or `head` for the last record of a change',
    kept: () => ({ latestOfKey: true, noneBeforeMs: day, deletionsForMs: 7 * day }),
    maxBytes: kafkaDefault,
    readers: [
      ...worker,
      'gateway',
      'admin',
      'catalog',
      'destinations',
      'status',
      'replay',
      'audience backfill',
    ],
    writers: ['up', 'admin', 'catalog', 'destinations'],
    hasOnePartition: true,
    isOfCatalog: true,
  },
  catalogHistory: {
    name: 'catalog-history',
    purpose: 'the changes of the topic `catalog`: who made them, and each object before and after',
    key: '`change/`, the number of the change, and that of its part',
    kept: ({ historyKeptMs = historyKeptByDefaultMs }) => ({ forMs: historyKeptMs }),
    maxBytes: () => 2 * kafkaDefaultBytes,
    readers: ['up', 'admin', 'catalog'],
    writers: ['up', 'admin', 'catalog', 'destinations'],
    hasOnePartition: true,
    isOfCatalog: true,
  },
} as const satisfies Readonly<Record<string, Topic>>

/** The name of a topic in the code. */
export type TopicKey = keyof typeof topics

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `topics` is closed
export const topicKeys = Object.keys(topics) as TopicKey[]

export function writtenBy(role: KafkaRole): readonly TopicKey[] {
  return topicKeys.filter((key) => writersOf(topics[key]).includes(role))
}

function writersOf({ writers }: Topic): readonly KafkaRole[] {
  return writers
}

export function accessOf(role: KafkaRole, key: TopicKey): readonly ('READ' | 'WRITE')[] {
  const { readers, writers }: Topic = topics[key]
  return [
    ...(readers.includes(role) ? (['READ'] as const) : []),
    ...(writers.includes(role) ? (['WRITE'] as const) : []),
  ]
}
