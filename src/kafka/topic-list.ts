import type { KafkaRole } from './kafka-roles.ts'

/**
 * Which records a topic keeps: all for so long; or of each key the latest, where nothing is compacted away
 * before it has that age, since it may not be delivered yet, and a deletion can be read for so long; or of
 * each key the latest, for so long.
 */
export type Keeping =
  | { forMs: number }
  | { latestOfKey: true; noneBeforeMs: number; deletionsForMs: number }
  | { latestOfKey: true; forMs: number }

const day = 24 * 3_600_000
/** Of what upstream services produce, and so the longest outage of ours that loses nothing. */
const sourceKeptMs = 7 * day
const kibi = 1024
/**
 * How long `memberships` tells at least that a key was removed: whoever knows an older state has to read all
 * of it again.
 */
export const deletionsKeptMs = 30 * day
/**
 * How long it is known who had what replayed. A replay ends long before: what it reads is kept for two weeks.
 */
const replayJobsKept = { latestOfKey: true, forMs: 90 * day } as const
/** What a topic takes by default, and so the least that producers may count on. */
const kafkaDefaultBytes = 1_048_588
const batchHeaderBytes = 12
/** Beside the message; what retried records and dead letters carry has limits that stay within it. */
const headersBytes = 64 * kibi

/** The largest record of `events`: the message that is taken, and no less than what is usual. */
function maxSourceBytes(maxMessageBytes: number): number {
  return Math.max(kafkaDefaultBytes, maxMessageBytes + batchHeaderBytes)
}

/** The largest record of the retry topics and the dead letters: whatever is taken has room there. */
export function maxCarriedBytes(maxMessageBytes: number): number {
  return maxSourceBytes(maxMessageBytes) + headersBytes
}

/**
 * Of what waits on topics of ours: it may have waited for all of its retries when an outage begins, and is
 * read again when the oldest record of `events` is. At least a day more than those have, to catch up in.
 */
function carriedKeptMs(retryLimitMs: number): number {
  return sourceKeptMs + Math.max(day, retryLimitMs)
}

/** What the retention of a topic depends on, in milliseconds. */
type KeptBy = { readonly retryLimitMs: number; readonly attemptsKeptMs: number }

/** One topic: all that the code and the documentation know of it. */
export type Topic = {
  /** Its name behind the prefix. */
  readonly name: string
  readonly purpose: string
  /** What the key of a record is, in words. */
  readonly key: string
  readonly kept: (by: KeptBy) => Keeping
  /** The largest batch. `maxMessageBytes`: the largest message that is delivered. */
  readonly maxBytes: (maxMessageBytes: number) => number
  readonly readers: readonly KafkaRole[]
  readonly writers: readonly KafkaRole[]
  /** The consumer group of the workers reads it; absent: it doesn't. */
  readonly subscription?: {
    /** Records wait until the state of their unit is read. */
    readonly needsState?: true
    /** Only the watermark is committed, not what is settled above it. */
    readonly hasWindow?: false
  }
  /** Upstream services write it: its values may be framed for a schema registry. */
  readonly isFramed?: true
  /** Only Sluice writes it, and it holds what belongs to a unit: each growth makes a new one. */
  readonly isOwn?: true
  /** `name` is the beginning: there is a topic for each tier of the ladder. */
  readonly tiers?: true
  /** It belongs to no unit, and has one partition. */
  readonly hasOnePartition?: true
  /** Nothing is delivered otherwise without it: a role that can't use it says so, and starts. */
  readonly isOptional?: true
}

const kafkaDefault = (): number => kafkaDefaultBytes
const worker = ['worker', 'up'] as const
const asSource = (): Keeping => ({ forMs: sourceKeptMs })
const asCarried = ({ retryLimitMs }: KeptBy): Keeping => ({ forMs: carriedKeptMs(retryLimitMs) })

/**
 * The one table of topics. Names (`topicNames`), layout (`topicTable`), the subscriptions of the group, the
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
    // A worker writes notices, and what a replay puts back: a message that was refused.
    writers: [...worker, 'gateway', 'send'],
    subscription: {},
    isFramed: true,
  },
  audienceChanges: {
    name: 'audience-changes',
    purpose: 'changes of audiences and computed traits, as upstream services produce them',
    key: '`userId`',
    kept: asSource,
    maxBytes: maxSourceBytes,
    readers: worker,
    // A worker moves a change that came to the wrong partition.
    writers: [...worker, 'gateway', 'audience sync', 'audience change'],
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
    purpose: 'what audiences and computed traits hold, and so what is to be delivered of them',
    key: 'a JSON list: user, space and property; or what a floor is of',
    kept: () => ({ latestOfKey: true, noneBeforeMs: sourceKeptMs, deletionsForMs: deletionsKeptMs }),
    maxBytes: maxCarriedBytes,
    readers: [...worker, 'log find', 'audience backfill'],
    writers: worker,
    subscription: { needsState: true },
    isOwn: true,
  },
  retryPrefix: {
    name: 'retry.',
    purpose: 'deliveries to try again after',
    key: 'that of the record that it began with',
    kept: asCarried,
    maxBytes: maxCarriedBytes,
    readers: worker,
    writers: worker,
    subscription: { needsState: true },
    isOwn: true,
    tiers: true,
  },
  replays: {
    name: 'replays',
    purpose: 'deliveries asked for again, by replay or backfill',
    key: 'that of the record that it began with',
    kept: asCarried,
    maxBytes: maxCarriedBytes,
    readers: worker,
    writers: [...worker, 'audience backfill'],
    subscription: { needsState: true },
    isOwn: true,
  },
  deadLetters: {
    name: 'dead-letters',
    purpose: 'what can not be delivered, with the reason',
    key: 'that of its record',
    kept: () => ({ forMs: 14 * day }),
    maxBytes: maxCarriedBytes,
    // A replay reads them.
    readers: [...worker, 'replay', 'admin'],
    writers: worker,
  },
  backfills: {
    name: 'backfills',
    purpose:
      'which destinations have missed a value of an audience, and need a backfill; how far a growth is',
    key: 'a JSON list: what it marks',
    kept: () => ({ latestOfKey: true, noneBeforeMs: 0, deletionsForMs: day }),
    maxBytes: kafkaDefault,
    readers: [...worker, 'topics apply', 'topics check', 'audience sync', 'audience backfill'],
    writers: [...worker, 'audience backfill'],
    hasOnePartition: true,
  },
  attempts: {
    name: 'attempts',
    purpose: 'the delivery log: what became of each delivery',
    key: 'the partition of its record',
    kept: ({ attemptsKeptMs }) => ({ forMs: attemptsKeptMs }),
    maxBytes: kafkaDefault,
    readers: ['up', 'log serve', 'log tail'],
    writers: worker,
    isOptional: true,
  },
  replayJobs: {
    name: 'replay-jobs',
    purpose: 'replays: who asked for what, and how far they are',
    key: 'a JSON list: the replay, and what of it',
    kept: () => replayJobsKept,
    maxBytes: kafkaDefault,
    readers: [...worker, 'replay', 'admin'],
    writers: [...worker, 'replay', 'admin'],
    hasOnePartition: true,
  },
  notices: {
    name: 'notices',
    purpose: 'notices about destinations: what workers see of them, and what was told',
    key: 'a JSON list: the worker that reports, or what was told of whom',
    kept: () => ({ latestOfKey: true, noneBeforeMs: 0, deletionsForMs: day }),
    maxBytes: kafkaDefault,
    readers: worker,
    writers: worker,
    hasOnePartition: true,
    isOptional: true,
  },
} as const satisfies Readonly<Record<string, Topic>>

/** What the code calls each topic. */
export type TopicKey = keyof typeof topics

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `topics` is closed
export const topicKeys = Object.keys(topics) as TopicKey[]

/** The topics that a role writes. */
export function writtenBy(role: KafkaRole): readonly TopicKey[] {
  return topicKeys.filter((key) => writersOf(topics[key]).includes(role))
}

function writersOf({ writers }: Topic): readonly KafkaRole[] {
  return writers
}

/** What a role does with a topic. */
export function accessOf(role: KafkaRole, key: TopicKey): readonly ('READ' | 'WRITE')[] {
  const { readers, writers }: Topic = topics[key]
  return [
    ...(readers.includes(role) ? (['READ'] as const) : []),
    ...(writers.includes(role) ? (['WRITE'] as const) : []),
  ]
}
