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
}

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
  /** `other`: the position belongs to another backfill. `unreadable`: the text is no stored position. */
  | { ok: false; fault: 'other' | 'unreadable' }

/** Decodes a text that `encodePosition` wrote for the same backfill. Never throws. */
export function decodePosition(text: string, scope: BackfillScope): DecodedPosition {
  const fields = parse(text)
  if (fields?.['version'] !== 1) return { ok: false, fault: 'unreadable' }
  const isSame = Object.entries(scope).every(([name, value]) => fields[name] === value)
  if (!isSame) return { ok: false, fault: 'other' }
  const { unit, end, bucket, offset, sent, marksUpTo } = fields
  if (!isCount(unit) || !isCount(end) || !isCount(bucket) || !isCount(sent)) {
    return { ok: false, fault: 'unreadable' }
  }
  // -1 means that no state of the bucket is done yet.
  if (offset !== -1 && !isCount(offset)) return { ok: false, fault: 'unreadable' }
  if (marksUpTo !== -1 && !isCount(marksUpTo)) return { ok: false, fault: 'unreadable' }
  return { ok: true, position: { unit, end, bucket, offset, sent, marksUpTo } }
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
