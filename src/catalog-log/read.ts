import { setTimeout as delay } from 'node:timers/promises'
import { OtherLogError } from '../kafka/wire/errors.ts'
import type { PartitionReader } from '../kafka/read/partition-reader.ts'
import type { WholeRecord } from '../message/records.ts'

/** Consecutive records of the catalog's topic. `next` is the offset at which the reading continues. */
export type CatalogPiece = { readonly records: readonly WholeRecord[]; readonly next: number }

/** Longer than a transaction stays open whose writer has died. */
const stallTimeoutMs = 25_000
/**
 * How long a partition may have no leader, or a shorter log, which may be so after a change of its leader.
 */
const patienceMs = 5_000

/**
 * Returns a function that reads the topic from an offset to its end. Unlike other readings, it waits until
 * the transactions that are open are over: the answer to a commit comes before the records are readable.
 * Throws an `OtherLogError` if the topic was made anew since the first call.
 */
export function catalogReading(
  reader: Pick<PartitionReader, 'ranges' | 'piece'>,
  topic: string,
): (from: number) => AsyncGenerator<CatalogPiece, void> {
  let knownId: string | undefined
  return async function* read(from) {
    const untilMs = performance.now() + patienceMs
    let range: { readonly start: number; readonly end: number } | undefined
    for (;;) {
      const { topicId, ranges } = await reader.ranges({ topic, partitions: [0] })
      range = ranges.get(0)
      const isOther = from > 0 && topicId !== (knownId ?? topicId)
      if (!isOther) knownId = topicId
      if (!isOther && range !== undefined && (from === 0 || range.end >= from)) break
      if (isOther || performance.now() > untilMs) {
        if (range === undefined) throw new Error(`${topic} has no leader now`)
        throw new OtherLogError(`${topic} was made anew, or has lost records that were read`)
      }
      await delay(100)
    }
    for (let next = Math.max(from, range.start); next < range.end;) {
      const piece = await reader.piece({ topic, partition: 0, from: next, to: range.end, stallTimeoutMs })
      yield piece
      next = piece.next
    }
  }
}
