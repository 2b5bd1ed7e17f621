import type { FetchedPartition } from '../wire/fetch-message.ts'
import { readRecordSet, type RecordSet } from '../wire/record-batch.ts'
import { withoutAborted } from '../wire/transactions.ts'

/**
 * A damaged batch is fetched again this many times, because it may have been damaged only on its way through
 * the network. If it still arrives damaged, the broker's disk is assumed to be the cause.
 */
const damagedTries = 3

/** The pauses between two tries of a fetch that failed, in milliseconds. */
export const fetchBackoff = { minMs: 100, maxMs: 2_000 }

export type FetchedRecords = Omit<RecordSet, 'records'> & {
  /** The records that a consumer may read, none before the first offset that is kept. */
  readonly records: ReturnType<typeof withoutAborted>
  /** True if the batch at the offset is damaged, or incomplete. Then there is nothing to read. */
  readonly isDamaged: boolean
  /** True if a damaged batch is passed from now on, because it was fetched often enough. */
  readonly passesDamaged: boolean
}

/**
 * Reads the records of one partition in the answer to a fetch that asked for the offset `from`. `damaged` is
 * the number of earlier answers in which the batch at this offset was damaged. A broker answers with the
 * whole batch in which `from` is. Its records before `keptFrom` are left out.
 */
export async function readFetched(
  { recordSet, highWatermark, abortedTransactions }: FetchedPartition,
  from: number,
  damaged: number,
  keptFrom = from,
): Promise<FetchedRecords> {
  const passesDamaged = damaged >= damagedTries
  const read = await readRecordSet(recordSet, { passDamaged: passesDamaged, end: highWatermark })
  const records = withoutAborted(read.records, abortedTransactions, keptFrom)
  return { ...read, records, isDamaged: read.nextOffset <= from, passesDamaged }
}
