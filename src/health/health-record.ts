import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/compile'

// The records of the topic `health`. Their keys are JSON lists:
//
// - `["process", WRITER]`: a worker process lives, and owns these units. It is written every few seconds, and
//   deleted when the process stops.
// - `["failing", DESTINATION, WRITER]`: the URLs of a destination that fail, as a process sees them. It is
//   deleted when they work again.
// - `["destination", DESTINATION, WRITER]`: what a process knows of a destination of which something waits,
//   or which was learned to take less. It is written when something changes, and deleted when there is
//   nothing to tell any more. It counts as long as its process lives.
//
// - `["audiences", WRITER]`: what a process knows of audiences: counts of values, first syncs, and
//   destinations that lack values. It is written when something changes, and counts as long as its process
//   lives.
//
// Readers ignore kinds and fields that they don't know, and every field of a destination may be absent. So
// further kinds and fields can be added.

const processSchema = Type.Object({
  /** The units whose queues the process knows. */
  units: Type.Array(Type.Number()),
  /** The number of units of the installation. */
  of: Type.Number(),
  /** The version of Sluice that runs. */
  version: Type.Optional(Type.String()),
  /** Since when the process runs, in epoch milliseconds. */
  startedMs: Type.Optional(Type.Number()),
  /** The number of records that the process has not settled, without retries and what waits in queues. */
  lag: Type.Optional(Type.Number()),
  /** Since when the oldest of them has been in Kafka, in epoch milliseconds. Absent: there is none. */
  oldestMs: Type.Optional(Type.Number()),
  /** The number of records on the retry topics. */
  retrying: Type.Optional(Type.Number()),
  /**
   * How many of them aren't counted for a destination, at most. Null: not known. Absent: an earlier version
   * runs, which counts none.
   */
  uncountedRetries: Type.Optional(Type.Union([Type.Number(), Type.Null()])),
  /** The number of destinations with a URL that fails, as this process sees them. */
  failing: Type.Optional(Type.Number()),
  /** The number of those of which it doesn't tell more, because there are too many. */
  untold: Type.Optional(Type.Number()),
  /** What keeps the process from the present catalog, in words. Absent: nothing does. */
  catalogTrouble: Type.Optional(Type.String()),
  /**
   * The time of the copy of the catalog that it uses instead, in epoch milliseconds. Absent: it uses none.
   */
  catalogCopyMs: Type.Optional(Type.Number()),
})

const waitingSchema = Type.Object({
  /** The number of messages that wait for their turn, in this process's units. */
  messages: Type.Number(),
  /** The number of messages of replays and first syncs that aren't done. */
  replayed: Type.Number(),
  /** The number of messages that wait for their next try. Absent: none is known. */
  retrying: Type.Optional(Type.Number()),
  /** Since when the oldest message waits, in epoch milliseconds. Absent: not known. */
  oldestMs: Type.Optional(Type.Number()),
  /** How many messages a second leave the queue. Absent: not known. */
  perSecond: Type.Optional(Type.Number()),
})

const limitSchema = Type.Object({
  /** The most requests in flight from this process. */
  inFlight: Type.Number(),
  /** The most requests a second from this process. Absent: not limited. */
  perSecond: Type.Optional(Type.Number()),
  /** About how many messages a request has. Absent: one. */
  perRequest: Type.Optional(Type.Number()),
  /** True if the endpoint was learned to take less than it could get. */
  isLowered: Type.Boolean(),
})

const failingHookSchema = Type.Object({
  /** The id of the hook. */
  hook: Type.String(),
  /** Since when it fails, in epoch milliseconds. */
  sinceMs: Type.Number(),
  /** True if its breaker is open. */
  isOpen: Type.Boolean(),
  /** The outcomes of the requests of the last five to ten minutes, and how many of each. */
  answers: Type.Record(Type.String(), Type.Number()),
  /** When a request last failed, in epoch milliseconds. */
  failedMs: Type.Number(),
  /** When a request last succeeded, in epoch milliseconds. Absent: not since the process knows the hook. */
  succeededMs: Type.Optional(Type.Number()),
  /** Why it has no token to log in with, if that was its last failure. */
  loginProblem: Type.Optional(Type.String()),
})

const failingSchema = Type.Object({
  hooks: Type.Array(failingHookSchema),
  /** When a message that has failed is tried next, in epoch milliseconds. Absent: not known. */
  nextMs: Type.Optional(Type.Number()),
  limit: Type.Optional(limitSchema),
})

const destinationSchema = Type.Object({
  waiting: Type.Optional(waitingSchema),
  limit: Type.Optional(limitSchema),
})

const firstSyncSchema = Type.Object({
  destination: Type.String(),
  space: Type.String(),
  /** The number of values that are still to be queued, from this process's units. */
  left: Type.Number(),
  /** True if it waits, because the destination or the source is not on. */
  isWaiting: Type.Boolean(),
})

const audiencesSchema = Type.Object({
  /** What the process has counted in its units. */
  spaces: Type.Array(
    Type.Object({
      space: Type.String(),
      /** How many units it has counted. */
      units: Type.Number(),
      /** When the oldest of them was counted, in epoch milliseconds. */
      atMs: Type.Number(),
      /** How many users have a value, by property. */
      values: Type.Record(Type.String(), Type.Number()),
      /** How many values have properties that are too many to be told. */
      more: Type.Number(),
    }),
  ),
  firstSyncs: Type.Array(firstSyncSchema),
  /** Destinations that lack values of a space. */
  behind: Type.Array(Type.Object({ destination: Type.String(), space: Type.String() })),
  /** How many first syncs and destinations are left out, because they are too many. */
  untold: Type.Number(),
})

/** What a process knows of audiences. */
export type AudienceWord = Readonly<Static<typeof audiencesSchema>>
export type FirstSyncWord = Readonly<Static<typeof firstSyncSchema>>

/** That a process lives, and which units it owns. */
export type ProcessWord = Readonly<Static<typeof processSchema>>
export type WaitingWord = Readonly<Static<typeof waitingSchema>>
export type LimitWord = Readonly<Static<typeof limitSchema>>
/** A hook that fails, as one process sees it. */
export type FailingHookWord = Readonly<Static<typeof failingHookSchema>>
/** The hooks of a destination that fail, as one process sees them. */
export type FailingWord = {
  readonly hooks: readonly FailingHookWord[]
  readonly nextMs?: number | undefined
  readonly limit?: LimitWord | undefined
}
/** What one process knows of a destination. */
export type DestinationWord = {
  readonly waiting?: WaitingWord | undefined
  readonly limit?: LimitWord | undefined
}

/** A record of the topic `health`. Without a word, it deletes the record with its key. */
export type HealthRecord =
  | { readonly kind: 'process'; readonly writer: string; readonly word: ProcessWord | undefined }
  | { readonly kind: 'audiences'; readonly writer: string; readonly word: AudienceWord | undefined }
  | {
      readonly kind: 'failing'
      readonly destinationId: string
      readonly writer: string
      readonly word: FailingWord | undefined
    }
  | {
      readonly kind: 'destination'
      readonly destinationId: string
      readonly writer: string
      readonly word: DestinationWord | undefined
    }

export function encodeHealth(record: HealthRecord): { readonly key: Buffer; readonly value: Buffer | null } {
  const names =
    record.kind === 'process' || record.kind === 'audiences'
      ? [record.kind, record.writer]
      : [record.kind, record.destinationId, record.writer]
  return {
    key: Buffer.from(JSON.stringify(names)),
    value: record.word === undefined ? null : Buffer.from(JSON.stringify(record.word)),
  }
}

const checkProcess = Compile(processSchema)
const checkAudiences = Compile(audiencesSchema)
const checkDestination = Compile(destinationSchema)
const checkFailing = Compile(failingSchema)

/**
 * Decodes a record. Returns `undefined` for a record that this version of Sluice doesn't write. Never throws.
 */
export function decodeHealth(key: Buffer, value: Buffer | null): HealthRecord | undefined {
  const names = parse(key.toString())
  const content = value === null ? undefined : parse(value.toString())
  if (!Array.isArray(names)) return undefined
  const [kind, first, second]: unknown[] = names
  if (typeof first !== 'string') return undefined
  if (kind === 'process' && names.length === 2)
    return { kind, writer: first, word: checkProcess.Check(content) ? content : undefined }
  if (kind === 'audiences' && names.length === 2)
    return { kind, writer: first, word: checkAudiences.Check(content) ? content : undefined }
  if (typeof second !== 'string' || names.length !== 3) return undefined
  const about = { destinationId: first, writer: second }
  if (kind === 'failing') return { kind, ...about, word: checkFailing.Check(content) ? content : undefined }
  if (kind !== 'destination') return undefined
  return { kind, ...about, word: checkDestination.Check(content) ? content : undefined }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
