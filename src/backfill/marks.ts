import { isCount, isFilled, readStanding, type Standing } from './standing.ts'

/**
 * A record of the topic `backfills`. The records say which values of a space were sent to destinations, and
 * which destinations have missed a value and need a backfill. Their keys are JSON lists:
 * - `[destinationId, spaceId]`: the destination missed a value, shortly before the record was written;
 * - `[destinationId, spaceId, "begun"]`: a backfill of the whole space begins. If the destination misses
 *   another value after this record, workers write the mark again, because the backfill may already have read
 *   past this value;
 * - `[destinationId, spaceId, "filled"]`: a backfill has made up for all marks at offsets below `upTo`;
 * - `[destinationId, spaceId, "unit", unit]`: how much of a unit's values the destination has got
 *   (`Standing`), written by the unit's owner;
 * - `[null, "tracked", unit]`: the owners of this unit write standings. So if a destination has no standing,
 *   it was connected to the space after this record.
 *
 * Each kind of record has keys of its own, so that compaction keeps the last record of each kind.
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
  | {
      readonly kind: 'unit'
      readonly destinationId: string
      readonly spaceId: string
      readonly unit: number
      readonly standing: Standing
    }
  | { readonly kind: 'tracked'; readonly unit: number }

/**
 * The interval in milliseconds at which each worker reads `backfills`. After each read, the worker writes the
 * marks that the topic lacks for values that were missed earlier.
 */
export const marksReadEveryMs = 5_000

export function encodeMark(mark: Mark): { key: Buffer; value: Buffer } {
  return {
    key: Buffer.from(JSON.stringify(keyOf(mark))),
    value: Buffer.from(JSON.stringify(valueOf(mark))),
  }
}

function keyOf(mark: Mark): readonly unknown[] {
  if (mark.kind === 'tracked') return [null, mark.kind, mark.unit]
  const { kind, destinationId, spaceId } = mark
  if (kind === 'missed') return [destinationId, spaceId]
  return kind === 'unit' ? [destinationId, spaceId, kind, mark.unit] : [destinationId, spaceId, kind]
}

function valueOf(mark: Mark): object {
  switch (mark.kind) {
    case 'filled':
      return { upTo: mark.upTo }
    case 'unit':
      return mark.standing
    case 'missed':
    case 'begun':
    case 'tracked':
      return {}
  }
}

/** Decodes a record that `encodeMark` wrote. Returns `undefined` for any other record. Never throws. */
export function decodeMark(key: Buffer, value: Buffer | null): Mark | undefined {
  const names = parse(key)
  if (!Array.isArray(names) || value === null) return undefined
  const [destinationId, spaceId, kind = 'missed', unit, ...rest]: unknown[] = names
  if (rest.length > 0) return undefined
  if (destinationId === null)
    return spaceId === 'tracked' && isCount(kind) && unit === undefined
      ? { kind: spaceId, unit: kind }
      : undefined
  if (!isFilled(destinationId) || !isFilled(spaceId)) return undefined
  const fields = parse(value)
  if (kind === 'unit') {
    const standing = readStanding(fields)
    return isCount(unit) && standing !== undefined
      ? { kind, destinationId, spaceId, unit, standing }
      : undefined
  }
  if (unit !== undefined) return undefined
  if (kind === 'missed' || kind === 'begun') return { kind, destinationId, spaceId }
  if (kind !== 'filled' || typeof fields !== 'object' || fields === null) return undefined
  const { upTo }: { upTo?: unknown } = fields
  return isCount(upTo) ? { kind, destinationId, spaceId, upTo } : undefined
}

/** A destination, and a space to which it is or was connected. */
export type Connection = { readonly destinationId: string; readonly spaceId: string }

/** The content of all records of one destination and one space. Only `Marks` changes this object. */
export type Marked = Connection & {
  /** The standings, by unit, each with the offset of its record. */
  readonly units: Map<number, { readonly standing: Standing; readonly at: number }>
  /** The offset of the last mark of a missed value; -1 if there is no such mark. */
  missedAt: number
  /** The offset of the last `begun` record; -1 if there is no such record. */
  begunAt: number
  filledUpTo: number
}

/** The content of all records of `backfills` that were read so far. */
export class Marks {
  readonly #partitions: number
  readonly #ofDestination = new Map<string, Map<string, Marked>>()
  readonly #tracked = new Set<number>()

  constructor(partitions: number) {
    this.#partitions = partitions
  }

  /** Adds a record of `backfills`. */
  take(mark: Mark, offset: number): void {
    if (mark.kind === 'tracked') {
      this.#tracked.add(mark.unit)
      return
    }
    const marked = this.of(mark.destinationId, mark.spaceId)
    switch (mark.kind) {
      case 'missed':
        marked.missedAt = Math.max(marked.missedAt, offset)
        return
      case 'begun':
        marked.begunAt = Math.max(marked.begunAt, offset)
        return
      case 'filled':
        marked.filledUpTo = Math.max(marked.filledUpTo, upToOf(mark, offset))
        return
      case 'unit':
        if (offset < (marked.units.get(mark.unit)?.at ?? -1)) return
        marked.units.set(mark.unit, { standing: mark.standing, at: offset })
        marked.filledUpTo = Math.max(marked.filledUpTo, this.#filledByUnits(marked))
    }
  }

  /** Returns true if owners of the unit have already written the standings of connections. */
  isTracked(unit: number): boolean {
    return this.#tracked.has(unit)
  }

  /**
   * Returns true if, in each unit, the first sync of a connection has ended or the destination was left out.
   */
  isComplete({ units }: Marked): boolean {
    if (units.size < this.#partitions) return false
    for (const { standing } of units.values())
      if (standing.kind !== 'told' && standing.kind !== 'left_out') return false
    return true
  }

  /** Yields all connections for which at least one record was read. */
  *all(): IterableIterator<Marked> {
    for (const ofSpace of this.#ofDestination.values()) yield* ofSpace.values()
  }

  /**
   * Returns the offset of `backfills` below which all units have made up for all marks. This is the lowest
   * `upTo` of all units. Returns 0 while the first sync of a unit hasn't ended, or if the destination was
   * left out in a unit.
   */
  #filledByUnits(marked: Marked): number {
    if (!this.isComplete(marked)) return 0
    let upTo = Infinity
    for (const { standing, at } of marked.units.values())
      upTo = Math.min(upTo, standing.kind === 'told' ? upToOf(standing, at) : 0)
    return upTo
  }

  of(destinationId: string, spaceId: string): Marked {
    let ofSpace = this.#ofDestination.get(destinationId)
    if (ofSpace === undefined) {
      ofSpace = new Map()
      this.#ofDestination.set(destinationId, ofSpace)
    }
    let marked = ofSpace.get(spaceId)
    if (marked === undefined) {
      marked = { destinationId, spaceId, missedAt: -1, begunAt: -1, filledUpTo: 0, units: new Map() }
      ofSpace.set(spaceId, marked)
    }
    return marked
  }

  /** The destinations that need a backfill, each with the space whose values it lacks. */
  get needingBackfill(): readonly Connection[] {
    const needing: Connection[] = []
    for (const marked of this.all()) {
      const { destinationId, spaceId } = marked
      if (needsBackfill(marked)) needing.push({ destinationId, spaceId })
    }
    return needing
  }
}

/**
 * Returns the offset of `backfills` below which a record makes up for all marks. `at` is the offset of the
 * record. A record that names an offset above its own was written to another log, such as the original of a
 * mirrored topic. Its offset says nothing about the marks of this log, so it makes up for none of them.
 */
function upToOf({ upTo }: { readonly upTo: number }, at: number): number {
  return upTo <= at ? upTo : 0
}

/** Returns true if the destination missed a value and no backfill has made up for this value. */
export function needsBackfill({ missedAt, filledUpTo }: Marked): boolean {
  return missedAt >= filledUpTo
}

/**
 * Returns true if there is already a mark that is valid for a value that is missed now. No backfill that has
 * begun so far can remove this mark.
 */
export function isReported({ missedAt, begunAt, filledUpTo }: Marked): boolean {
  return missedAt >= filledUpTo && missedAt > begunAt
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}
