import { parseStateKey } from '../audience/records/state-record.ts'
import { partitionOf } from '../message/partitioner.ts'
import type { ReceivedHeaders } from '../message/record-headers.ts'
import { decodeRetryState } from '../retry/retry-state.ts'
import type { Change } from './plan.ts'

// Functions that find the partitions of copied records in the new layout.

/**
 * Returns the partitions that get a copy of a record of `memberships` that was in `partition`. The state of a
 * property goes to the unit of its user. The last sync of an audience goes to every new unit whose number is
 * `partition` plus a multiple of the old number of units. The record of a user's deletion (a floor) goes to
 * these units too, with one exception. The new unit of the user gets this record only from the old unit of
 * the user, so that the record keeps its order among the user's states.
 */
export function unitsOfState(key: Buffer | null, partition: number, { from, to }: Change): readonly number[] {
  const stateKey = key === null ? undefined : parseStateKey(key)
  switch (stateKey?.kind) {
    case undefined:
      // Sluice did not write this record. The unit that reads the record reports this.
      return [partition]
    case 'property':
      return [partitionOf(stateKey.userId, to.partitions)]
    case 'sync':
      return [...heirsOf(partition, from.partitions, to.partitions)]
    case 'deletion': {
      const own = partitionOf(stateKey.userId, to.partitions)
      const others = [...heirsOf(partition, from.partitions, to.partitions)].filter((unit) => unit !== own)
      return partitionOf(stateKey.userId, from.partitions) === partition ? [...others, own] : others
    }
  }
}

function* heirsOf(unit: number, from: number, to: number): IterableIterator<number> {
  for (let heir = unit; heir < to; heir += from) yield heir
}

/**
 * Returns the partition for a record of a retry topic or of `replays` that was in `partition`. A delivery
 * with a property goes to the unit of its user, because the owner of that unit judges the delivery. Other
 * deliveries are placed by their keys, so the deliveries of one user stay together.
 */
export function unitOfWaiting(
  { key, headers }: { readonly key: Buffer | null; readonly headers: ReceivedHeaders },
  partition: number,
  { to }: Change,
): number {
  const decoded = decodeRetryState(headers)
  // Sluice did not write this record. The unit that reads the record reports this.
  if (!decoded.ok) return partition
  const { property } = decoded.state
  if (property !== undefined) return partitionOf(property.userId, to.partitions)
  return key === null ? partition : partitionOf(key.toString(), to.partitions)
}
