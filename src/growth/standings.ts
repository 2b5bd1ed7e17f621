import type { Mark, Marks } from '../backfill/marks.ts'
import type { Standing } from '../backfill/standing.ts'
import type { Change } from './layout.ts'

/**
 * What is written of how destinations stand to the units of the new layout. The users of a new unit were in
 * several old ones: a destination stands to it as to the worst of them, so that it is told some again rather
 * than left without any. What is written twice, or was written in part before, comes to the same.
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
  // Behind the standings: as long as the log hasn't these, the owner of a new unit takes what it finds for
  // told.
  if (before.every((unit) => marks.isTracked(unit)))
    for (const unit of numbers(from.partitions, to.partitions)) written.push({ kind: 'tracked', unit })
  return written
}

/** As the owner of such a unit would take it. */
function unwritten(isTracked: boolean): Standing {
  return isTracked ? { kind: 'new' } : { kind: 'told', upTo: 0 }
}

function worse(a: Standing, b: Standing): Standing {
  const [calmA, calmB] = [calm(a), calm(b)]
  if (calmA.kind === 'told' && calmB.kind === 'told')
    return { kind: 'told', upTo: Math.min(calmA.upTo, calmB.upTo) }
  return rank(calmA) >= rank(calmB) ? calmA : calmB
}

/** One that is being told begins anew: how far it was is of one old unit. */
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
