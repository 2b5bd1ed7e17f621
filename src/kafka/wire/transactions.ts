import type { AbortedTransaction } from './fetch-message.ts'
import type { FetchedRecord } from './record-batch.ts'

const abortMarker = Buffer.from([0, 0, 0, 0])

/**
 * Returns the records of a fetch that a consumer may read, beginning at the offset `from`. Leaves out the
 * markers of transactions, and the records of aborted transactions. An aborted transaction begins at its
 * first offset and ends with the marker of its producer. `records` are all records of the fetch, in order.
 * Source: the Kafka protocol, Fetch response and control batches.
 */
export function withoutAborted(
  records: readonly FetchedRecord[],
  transactions: readonly AbortedTransaction[],
  from: number,
): readonly FetchedRecord[] {
  if (isPlain(records, transactions, from)) return records
  const isAborted = abortedBy(transactions)
  // `isAborted` has to be called for every record, because it notes the markers that end transactions.
  return records.filter((record) => !isAborted(record) && record.offset >= from && !record.isControlRecord)
}

/**
 * Returns true if no record has to be left out. This is nearly always so, and then the list needn't be
 * copied.
 */
function isPlain(
  records: readonly FetchedRecord[],
  transactions: readonly AbortedTransaction[],
  from: number,
): boolean {
  if (transactions.length > 0 || (records[0]?.offset ?? from) < from) return false
  return !records.some(({ isControlRecord }) => isControlRecord)
}

function abortedBy(transactions: readonly AbortedTransaction[]): (record: FetchedRecord) => boolean {
  const toCome = transactions.toSorted((a, b) => a.firstOffset - b.firstOffset)
  const open = new Set<string>()
  let next = 0
  return ({ offset, isControlRecord, key, batchContext: { producerId, inTransaction } }) => {
    for (let one = toCome[next]; one !== undefined && one.firstOffset <= offset; one = toCome[++next])
      open.add(one.producerId)
    if (isControlRecord) {
      if (key?.equals(abortMarker) === true) open.delete(producerId)
      return false
    }
    return inTransaction && open.has(producerId)
  }
}
