/**
 * Which destinations have missed a value of a space, and need a backfill of it: the records of the topic `backfills`, whose keys
 * are JSON lists.
 * - `[destinationId, spaceId]`: it has missed one, shortly before this was written;
 * - `[destinationId, spaceId, "begun"]`: a backfill of all that the space holds begins. What is missed from here on is written
 *   again by whoever sees it, since the backfill may have read past it;
 * - `[destinationId, spaceId, "filled"]`: a backfill has made up for what was missed at offsets below `upTo`.
 *
 * Each of them is a key of its own, so that compaction leaves the last of each.
 */
export type Mark =
  | { readonly kind: 'missed'; readonly destinationId: string; readonly spaceId: string }
  | { readonly kind: 'begun'; readonly destinationId: string; readonly spaceId: string }
  | {
      readonly kind: 'filled'
      readonly destinationId: string
      readonly spaceId: string
      readonly upTo: number
    }

/** So often, in milliseconds, each worker reads the log, and writes what it doesn't say of what was missed before. */
export const marksReadEveryMs = 5_000

export function encodeMark(mark: Mark): { key: Buffer; value: Buffer } {
  const { kind, destinationId, spaceId } = mark
  const key = kind === 'missed' ? [destinationId, spaceId] : [destinationId, spaceId, kind]
  const value = kind === 'filled' ? { upTo: mark.upTo } : {}
  return { key: Buffer.from(JSON.stringify(key)), value: Buffer.from(JSON.stringify(value)) }
}

/** `undefined` for what `encodeMark` has not written. Never throws. */
export function decodeMark(key: Buffer, value: Buffer | null): Mark | undefined {
  const names = parse(key)
  if (!Array.isArray(names) || value === null) return undefined
  const [destinationId, spaceId, kind = 'missed', ...rest]: unknown[] = names
  if (!isFilled(destinationId) || !isFilled(spaceId) || rest.length > 0) return undefined
  if (kind === 'missed' || kind === 'begun') return { kind, destinationId, spaceId }
  const fields = parse(value)
  if (kind !== 'filled' || typeof fields !== 'object' || fields === null) return undefined
  const { upTo }: { upTo?: unknown } = fields
  return isCount(upTo) ? { kind, destinationId, spaceId, upTo } : undefined
}

/** A destination, and a space that it has or had. */
export type Connection = { readonly destinationId: string; readonly spaceId: string }

/** What is known of a destination and a space. Only ever changed by `Marks`. */
export type Marked = Connection & {
  /** Offset of the last record that says so; -1: none. */
  missedAt: number
  /** Offset of the last record that says so; -1: none. */
  begunAt: number
  filledUpTo: number
}

/** The log as far as it was read. */
export class Marks {
  readonly #ofDestination = new Map<string, Map<string, Marked>>()

  /** Takes a record of the log. */
  take(mark: Mark, offset: number): void {
    const marked = this.of(mark.destinationId, mark.spaceId)
    switch (mark.kind) {
      case 'missed':
        marked.missedAt = Math.max(marked.missedAt, offset)
        return
      case 'begun':
        marked.begunAt = Math.max(marked.begunAt, offset)
        return
      case 'filled':
        marked.filledUpTo = Math.max(marked.filledUpTo, mark.upTo)
    }
  }

  of(destinationId: string, spaceId: string): Marked {
    let ofSpace = this.#ofDestination.get(destinationId)
    if (ofSpace === undefined) {
      ofSpace = new Map()
      this.#ofDestination.set(destinationId, ofSpace)
    }
    let marked = ofSpace.get(spaceId)
    if (marked === undefined) {
      marked = { destinationId, spaceId, missedAt: -1, begunAt: -1, filledUpTo: 0 }
      ofSpace.set(spaceId, marked)
    }
    return marked
  }

  /** Destinations that need a backfill, each with the space. */
  get behind(): readonly Connection[] {
    const behind: Connection[] = []
    for (const ofSpace of this.#ofDestination.values()) {
      for (const marked of ofSpace.values()) {
        const { destinationId, spaceId } = marked
        if (isBehind(marked)) behind.push({ destinationId, spaceId })
      }
    }
    return behind
  }
}

/** It has missed something that no backfill has made up for. */
export function isBehind({ missedAt, filledUpTo }: Marked): boolean {
  return missedAt >= filledUpTo
}

/** The log says so already of what is missed now: no backfill that has begun since can take it down. */
export function isTold({ missedAt, begunAt, filledUpTo }: Marked): boolean {
  return missedAt >= filledUpTo && missedAt > begunAt
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
