import { isCount } from './standing.ts'
/** The scope of a backfill. A stored position belongs to one scope. */
export type BackfillScope = {
  readonly prefix: string
  readonly partitions: number
  readonly spaceId: string
  readonly destinationId: string
  readonly audienceId: string | null
  readonly property: string | null
  readonly withLeft: boolean
  /** The ids of the topics `memberships` and `backfills`, whose offsets a position has, if they are known. */
  readonly membershipsId?: string | undefined
  readonly backfillsId?: string | undefined
}

const idNames: ReadonlySet<string> = new Set(['membershipsId', 'backfillsId'])

/**
 * The progress of a backfill. All units before `unit` are done. In `unit`, the backfill has read the records
 * before `end` (a later run reads the records after it too), and all buckets before `bucket` are done. In
 * `bucket`, the states up to `offset` are done.
 */
export type BackfillPosition = {
  readonly unit: number
  readonly end: number
  readonly bucket: number
  readonly offset: number
  /** The number of Identifies that were written so far, in all runs of the backfill. */
  readonly sent: number
  /**
   * An offset of `backfills`. Once the backfill is done, it has made up for all marks below this offset. This
   * is the offset after the last record that the topic had when the backfill began. -1 if the backfill
   * doesn't cover the whole space.
   */
  readonly marksUpTo: number
}

/** Encodes a position as JSON that is readable for people. */
export function encodePosition(scope: BackfillScope, position: BackfillPosition): string {
  return `${JSON.stringify({ version: 1, ...scope, ...position }, null, 2)}\n`
}

export type DecodedPosition =
  | { ok: true; position: BackfillPosition }
  /**
   * `other`: the position belongs to another backfill. `other_log`: its offsets are those of other topics,
   * which are of another cluster, or were created again since. `unreadable`: the text is no stored position.
   */
  | { ok: false; fault: 'other' | 'other_log' | 'unreadable' }

/**
 * Decodes a text that `encodePosition` wrote for the same backfill. An id of a topic that isn't known, or
 * that an earlier version of Sluice didn't write, counts as the same id. Never throws.
 */
export function decodePosition(text: string, scope: BackfillScope): DecodedPosition {
  const fields = parse(text)
  if (fields?.['version'] !== 1) return { ok: false, fault: 'unreadable' }
  const others = Object.entries(scope).filter(([name, value]) =>
    idNames.has(name) ? isOther(fields[name], value) : fields[name] !== value,
  )
  if (others.length > 0)
    return { ok: false, fault: others.every(([name]) => idNames.has(name)) ? 'other_log' : 'other' }
  const { unit, end, bucket, offset, sent, marksUpTo } = fields
  if (!isCount(unit) || !isCount(end) || !isCount(bucket) || !isCount(sent)) {
    return { ok: false, fault: 'unreadable' }
  }
  // -1 means that no state of the bucket is done yet.
  if (offset !== -1 && !isCount(offset)) return { ok: false, fault: 'unreadable' }
  if (marksUpTo !== -1 && !isCount(marksUpTo)) return { ok: false, fault: 'unreadable' }
  return { ok: true, position: { unit, end, bucket, offset, sent, marksUpTo } }
}

function isOther(id: unknown, present: unknown): boolean {
  return id !== undefined && present !== undefined && id !== present
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
