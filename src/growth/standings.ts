import type { Mark, Marks } from '../backfill/marks.ts'
import type { Standing } from '../backfill/standing.ts'
import type { Change } from './plan.ts'

/**
 * Returns the records of `backfills` for the new layout: the standings of destinations, and the units whose
 * standings are tracked. A standing says how far a destination has got with the members of one unit of a
 * space. The users of a new unit come from several old units. So a destination gets the worst of its
 * standings in these old units, because it is better to receive some values twice than to miss any. If only a
 * part of these records was written, all of them can be written again.
 */
export function standingsAfter(marks: Marks, { from, to }: Change): readonly Mark[] {
  const before = numbers(0, from.partitions)
  const written: Mark[] = []
  for (const { destinationId, spaceId, units } of marks.all()) {
    if (units.size === 0) continue
    const standings = before.map((unit) => units.get(unit)?.standing ?? unwritten(marks.isTracked(unit)))
    const standing = standings.reduce(worse)
    for (const unit of numbers(0, to.partitions))
      written.push({ kind: 'unit', destinationId, spaceId, unit, standing: calm(standing) })
  }
  // The records of tracked units are written after the standings. While `backfills` lacks these records, the
  // owner of a new unit treats connections without a standing as `told`.
  if (before.every((unit) => marks.isTracked(unit)))
    for (const unit of numbers(from.partitions, to.partitions)) written.push({ kind: 'tracked', unit })
  return written
}

/**
 * Returns the standing that the owner of a unit assumes if no standing was written for a destination.
 * `isTracked` is true if owners of the unit have already written standings.
 */
function unwritten(isTracked: boolean): Standing {
  return isTracked ? { kind: 'new' } : { kind: 'told', upTo: 0 }
}

function worse(a: Standing, b: Standing): Standing {
  const [calmA, calmB] = [calm(a), calm(b)]
  if (calmA.kind === 'told' && calmB.kind === 'told')
    return { kind: 'told', upTo: Math.min(calmA.upTo, calmB.upTo) }
  return rank(calmA) >= rank(calmB) ? calmA : calmB
}

/**
 * Replaces the standing of a running first sync by `new` or `parted`, so that the first sync starts again. It
 * can't continue, because its position is valid only in the old unit in which it ran.
 */
function calm(standing: Standing): Exclude<Standing, { kind: 'syncing' }> {
  if (standing.kind !== 'syncing') return standing
  return { kind: standing.withLeft ? 'parted' : 'new' }
}

function rank({ kind }: Exclude<Standing, { kind: 'syncing' }>): number {
  return ['told', 'left_out', 'new', 'parted'].indexOf(kind)
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index)
}
