import { isCount } from './standing.ts'
/** What a backfill is of, and so what a note of its position belongs to. */
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
 * How far a backfill is: done with all units before `unit`; in this one, of the records before `end`, with
 * all buckets before `bucket`, and in this one with the states up to `offset`.
 */
export type BackfillPosition = {
  readonly unit: number
  readonly end: number
  readonly bucket: number
  readonly offset: number
  /** Identifies written so far, over all runs. */
  readonly sent: number
  /**
   * It makes up for what was missed at offsets of `backfills` below this, once it is done: the end of that
   * topic when the backfill began. -1: it is not of all that the space holds.
   */
  readonly marksUpTo: number
}

/** As JSON, for people too. */
export function encodePosition(scope: BackfillScope, position: BackfillPosition): string {
  return `${JSON.stringify({ version: 1, ...scope, ...position }, null, 2)}\n`
}

export type DecodedPosition =
  | { ok: true; position: BackfillPosition }
  /** `other`: it is of another backfill. `unreadable`: it is none. */
  | { ok: false; fault: 'other' | 'unreadable' }

/** Reads what `encodePosition` wrote of the same backfill. Never throws. */
export function decodePosition(text: string, scope: BackfillScope): DecodedPosition {
  const fields = parse(text)
  if (fields?.['version'] !== 1) return { ok: false, fault: 'unreadable' }
  const isSame = Object.entries(scope).every(([name, value]) => fields[name] === value)
  if (!isSame) return { ok: false, fault: 'other' }
  const { unit, end, bucket, offset, sent, marksUpTo } = fields
  if (!isCount(unit) || !isCount(end) || !isCount(bucket) || !isCount(sent)) {
    return { ok: false, fault: 'unreadable' }
  }
  // Before the first record.
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
