import type { StatePlace } from '../audience/states-page.ts'

/** How a destination stands to what one unit holds of a space. */
export type Standing =
  /** It is new, and is told what changes; what was there before it is still to be told. */
  | { readonly kind: 'new' }
  /**
   * It has been told all that the unit holds, and is told what changes. `upTo`: that made up for what was
   * missed at offsets of `backfills` below; 0 where nothing was sent for it.
   */
  | { readonly kind: 'told'; readonly upTo: number }
  /** It is being told. */
  | Syncing
  /** It was told some, and then what changed went to others: whom it knows of may have left meanwhile. */
  | { readonly kind: 'parted' }
  /** It was connected later, and is told only what changes: a backfill is up to the operator. */
  | { readonly kind: 'left_out' }

export type Syncing = {
  readonly kind: 'syncing'
  readonly upTo: number
  /** Also who has left, and traits without a value: it was told of them before. */
  readonly withLeft: boolean
  /** All states up to this one are in `replays`; `null`: none is. */
  readonly after: StatePlace | null
  /** Identifies written so far, over all owners. */
  readonly sent: number
}

/** `undefined` for what is none. */
export function readStanding(given: unknown): Standing | undefined {
  if (typeof given !== 'object' || given === null) return undefined
  const fields: Partial<Record<'kind' | 'upTo' | 'withLeft' | 'after' | 'sent', unknown>> = given
  const { kind, upTo, withLeft, after, sent } = fields
  if (kind === 'new' || kind === 'parted' || kind === 'left_out') return { kind }
  if (!isCount(upTo)) return undefined
  if (kind === 'told') return { kind, upTo }
  if (kind !== 'syncing' || typeof withLeft !== 'boolean' || !isCount(sent)) return undefined
  if (after === null) return { kind, upTo, withLeft, after, sent }
  if (!Array.isArray(after) || after.length !== 2) return undefined
  const [property, userId]: unknown[] = after
  if (!isFilled(property) || !isFilled(userId)) return undefined
  return { kind, upTo, withLeft, after: [property, userId], sent }
}

export function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
