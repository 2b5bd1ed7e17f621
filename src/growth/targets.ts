import { parseSubject } from '../audience/state-record.ts'
import { partitionOf } from '../message/partitioner.ts'
import type { ReceivedHeaders } from '../message/record-headers.ts'
import { decodeCarried } from '../retry/carried.ts'
import type { Change } from './layout.ts'

/** Where a record that is copied belongs in the new layout. */

/**
 * The partitions of a record of `memberships` that was in `partition`. A property goes to the unit of its
 * user. What each unit has of its own (deletion floors, and the last sync of an audience) goes from one unit
 * to those whose number has the same remainder; a user's own unit has its floor from the one that was the
 * user's own, among the states that it is about.
 */
export function unitsOfState(key: Buffer | null, partition: number, { from, to }: Change): readonly number[] {
  const subject = key === null ? undefined : parseSubject(key)
  switch (subject?.kind) {
    case undefined:
      // Nothing of ours: the unit that reads it says so.
      return [partition]
    case 'property':
      return [partitionOf(subject.userId, to.partitions)]
    case 'sync':
      return [...heirsOf(partition, from.partitions, to.partitions)]
    case 'deletion': {
      const own = partitionOf(subject.userId, to.partitions)
      const others = [...heirsOf(partition, from.partitions, to.partitions)].filter((unit) => unit !== own)
      return partitionOf(subject.userId, from.partitions) === partition ? [...others, own] : others
    }
  }
}

function* heirsOf(unit: number, from: number, to: number): IterableIterator<number> {
  for (let heir = unit; heir < to; heir += from) yield heir
}

/**
 * The partition of a record of a retry topic or of `replays` that was in `partition`. One that tells a
 * property goes to the unit of its user, which judges it; others stay together by their keys.
 */
export function unitOfWaiting(
  { key, headers }: { readonly key: Buffer | null; readonly headers: ReceivedHeaders },
  partition: number,
  { to }: Change,
): number {
  const decoded = decodeCarried(headers)
  // Somebody else's: the unit that reads it says so.
  if (!decoded.ok) return partition
  const { property } = decoded.carried
  if (property !== undefined) return partitionOf(property.userId, to.partitions)
  return key === null ? partition : partitionOf(key.toString(), to.partitions)
}
