import { setImmediate as turn } from 'node:timers/promises'
import type { PieceOptions } from '../../../src/kafka/read/partition-reader.ts'

/** Fetches up to `most` records from a log that has a record at each offset. */
export async function fetchFromFullLog({ from, to }: Pick<PieceOptions, 'from' | 'to'>, most: number) {
  await turn()
  const records = Array.from({ length: Math.min(most, to - from) }, (_, index) => ({
    offset: from + index,
    key: null,
    value: null,
    headers: {},
    timestampMs: 0,
    leaderEpoch: 1,
  }))
  return { records, next: from + records.length }
}
