import type { HeldRecord } from '../message/held-record.ts'
import type { WholeRecord } from '../message/records.ts'
import type { UnitQueueOptions } from './queue-options.ts'

/** Returns a record that was taken out of the queue, with what to call at its end. */
export function heldWaiting(
  { topic, unit, partition }: Pick<UnitQueueOptions, 'topic' | 'unit' | 'partition'>,
  { offset, timestampMs }: WholeRecord,
  end: Pick<HeldRecord, 'settle' | 'giveBack'>,
): HeldRecord {
  return {
    topic,
    partition: unit,
    offset,
    timestampMs,
    isLate: false,
    get isAbandoned() {
      return partition.isLost
    },
    get isElsewhere() {
      return partition.isElsewhere
    },
    get mayHaveBegun() {
      return offset < partition.begunBelow
    },
    ...end,
  }
}
