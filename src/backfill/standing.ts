import type { StatePlace } from '../audience/store/states-page.ts'

/** The standing of a destination to one unit of a space. */
export type Standing =
  /**
   * The connection is new. The destination gets changes. The values that are older than the connection are
   * still to be sent.
   */
  | { readonly kind: 'new' }
  /**
   * The destination has been sent all values that the unit holds, and gets every change. `upTo`: the first
   * sync made up for every mark below this offset of `backfills`; 0 if no first sync was needed.
   */
  | { readonly kind: 'told'; readonly upTo: number }
  /** A first sync is under way. */
  | Syncing
  /**
   * The destination got some values. It was then disconnected, or switched off before its first sync was
   * complete. Since then, users whom the destination knows may have left.
   */
  | { readonly kind: 'parted' }
  /**
   * The destination was connected later, and gets only changes. If it needs the older values, an operator has
   * to start a backfill.
   */
  | { readonly kind: 'left_out' }

export type Syncing = {
  readonly kind: 'syncing'
  readonly upTo: number
  /**
   * True if states of users who have left and of traits without a value are sent too, because the destination
   * got earlier values of them.
   */
  readonly withLeft: boolean
  /**
   * The property and the user of the last state that was written to `replays`; `null` before the first state.
   */
  readonly after: StatePlace | null
  /** The number of Identifies that all owners of the unit together have written so far. */
  readonly sent: number
}

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
