import type { Repeats } from './repeats.ts'

/** The records of a partition that former owners have settled and passed on. */
export type PassedOnRecords = {
  readonly partition: number
  /** All of the records are at `start` or later, and before `end`. */
  readonly start: number
  readonly end: number
  /** Returns true if the record that was read at this offset, of this leader epoch, is one of them. */
  has(offset: number, leaderEpoch: number): boolean
}

export type LoggedRecord = {
  readonly offset: number
  readonly timestampMs: number
  readonly leaderEpoch?: number
  readonly value: Uint8Array | null
}

export type MessageId = { readonly sourceId: string; readonly messageId: string }

export type RebuildOptions<R extends LoggedRecord> = {
  readonly repeats: Pick<Repeats, 'tenureOf' | 'recall'>
  /** Fetches once. Returns records from `from` on and before `to`, and where to go on. */
  readonly read: (
    from: number,
    to: number,
  ) => Promise<{ readonly records: readonly R[]; readonly next: number }>
  /** Returns false if the topic may have been created again since the commit. */
  readonly isSameTopic: () => Promise<boolean>
  /** Returns the id that the sender gave to a message. `undefined` if it gave none, or if it isn't known. */
  readonly idOf: (record: R) => MessageId | undefined | Promise<MessageId | undefined>
  readonly now: () => number
  /** Returns true once the time for the rebuild is over. */
  readonly isOver: () => boolean
  /** Messages that were appended earlier than this before now, in milliseconds, aren't remembered. */
  readonly windowMs: number
  /** The most messages to remember, and the most bytes of values to read. */
  readonly messages: number
  readonly bytes: number
}

/**
 * Why a rebuild ended. `start`: nothing older is known, or there. `lost`: the unit, or its log, isn't the
 * same any more.
 */
export type RebuildEnd = 'start' | 'window' | 'messages' | 'bytes' | 'time' | 'lost'

export type Rebuilt = { records: number; bytes: number; remembered: number; ended: RebuildEnd }

/** The offsets of the first part, and of the largest. A later part has about `partBytes`. */
const firstPart = 64
const largestPart = 4_000
const partBytes = 1_000_000

/**
 * Remembers the messages that former owners of a unit have passed on, from the newest to the oldest, part by
 * part, until a limit is reached. Whatever ends it, what is remembered is true. Repeats of all else are
 * delivered.
 */
export async function rebuild<R extends LoggedRecord>(
  passedOn: PassedOnRecords,
  options: RebuildOptions<R>,
): Promise<Rebuilt> {
  const done: Rebuilt = { records: 0, bytes: 0, remembered: 0, ended: 'start' }
  try {
    const ended = await readBackwards(passedOn, options, done)
    return { ...done, ended }
  } catch (error) {
    if (options.isOver()) return { ...done, ended: 'time' }
    throw error
  }
}

/** Adds to `done` what it does. Returns why it has ended. */
async function readBackwards<R extends LoggedRecord>(
  passedOn: PassedOnRecords,
  options: RebuildOptions<R>,
  done: Rebuilt,
): Promise<RebuildEnd> {
  const tenure = options.repeats.tenureOf(passedOn.partition)
  let size = firstPart
  for (let end = passedOn.end; end > passedOn.start;) {
    const start = Math.max(passedOn.start, end - size)
    const part = await readPart(passedOn, { start, end }, options)
    if (part === undefined) return 'time'
    done.records += part.records
    done.bytes += part.bytes
    if (!(await options.isSameTopic())) return 'lost'
    const ended = recallPart(part, { tenure, passedOn, done, options })
    if (ended !== undefined) return ended
    if (part.records === 0) return 'start'
    const fitting = Math.floor((partBytes * part.records) / Math.max(1, part.bytes))
    size = Math.max(1, Math.min(fitting, 2 * size, largestPart))
    end = start
  }
  return 'start'
}

type Found = MessageId & { readonly offset: number; readonly timestampMs: number }

type Part = { records: number; bytes: number; oldestMs: number; readonly found: Found[] }

/** Reads a part of the log, forwards. Returns `undefined` if the time is over. */
async function readPart<R extends LoggedRecord>(
  passedOn: PassedOnRecords,
  { start, end }: { readonly start: number; readonly end: number },
  { read, idOf, isOver }: RebuildOptions<R>,
): Promise<Part | undefined> {
  const part: Part = { records: 0, bytes: 0, oldestMs: Infinity, found: [] }
  for (let at = start; at < end;) {
    if (isOver()) return undefined
    const { records, next } = await read(at, end)
    for (const record of records) {
      const { offset, timestampMs, leaderEpoch = -1, value } = record
      part.records++
      part.bytes += value?.length ?? 0
      part.oldestMs = Math.min(part.oldestMs, timestampMs)
      if (!passedOn.has(offset, leaderEpoch)) continue
      const asked = idOf(record)
      const id = asked instanceof Promise ? await asked : asked
      if (id !== undefined) part.found.push({ ...id, offset, timestampMs })
    }
    at = Math.max(next, at + 1)
  }
  return part
}

/** Remembers what was found, the newest first. Returns why nothing older is to be read, if so. */
function recallPart(
  { found, oldestMs }: Part,
  {
    tenure,
    passedOn: { partition },
    done,
    options: { repeats, now, windowMs, messages, bytes, isOver },
  }: {
    readonly tenure: number
    readonly passedOn: PassedOnRecords
    readonly done: Rebuilt
    readonly options: Omit<RebuildOptions<never>, 'read' | 'idOf'>
  },
): RebuildEnd | undefined {
  const sinceMs = now() - windowMs
  for (const { offset, timestampMs, sourceId, messageId } of found.toReversed()) {
    if (timestampMs <= sinceMs) continue
    if (done.remembered >= messages) return 'messages'
    const recalled = repeats.recall(tenure, { partition, offset, timestampMs }, sourceId, messageId)
    if (recalled === 'lost') return 'lost'
    if (recalled === 'remembered') done.remembered++
  }
  if (oldestMs <= sinceMs) return 'window'
  if (done.bytes >= bytes) return 'bytes'
  return isOver() ? 'time' : undefined
}
