import type { PartitionRecords } from '../../message/records.ts'
import { describeErrorCode, errorCodes } from '../wire/error-codes.ts'
import { partitionName } from '../wire/partition-name.ts'

/**
 * The outcome for the records of one partition. `offset` is the offset of the first record. Records that
 * weren't acknowledged may have been written nevertheless.
 */
export type ProduceOutcome =
  | { readonly isWritten: true; readonly offset: number }
  | {
      readonly isWritten: false
      readonly reason: string
      /** The error with which the broker has refused the records. `undefined` if no answer came. */
      readonly errorCode: number | undefined
      /** False if the records were certainly not sent. */
      readonly isSent: boolean
    }

export type PartitionAnswer = { readonly errorCode: number; readonly baseOffset: number }

export function outcomeOf(item: PartitionRecords, answer: PartitionAnswer | undefined): ProduceOutcome {
  if (answer === undefined) return unwritten(`${partitionName(item)} was not acknowledged`, { isSent: true })
  const { errorCode, baseOffset } = answer
  if (errorCode === errorCodes.NONE) return { isWritten: true, offset: baseOffset }
  return unwritten(`${partitionName(item)}: ${describeErrorCode(errorCode)}`, { isSent: true, errorCode })
}

export function unwritten(
  reason: string,
  { isSent, errorCode }: { readonly isSent: boolean; readonly errorCode?: number },
): ProduceOutcome {
  return { isWritten: false, reason, errorCode, isSent }
}

export function withoutLeader(item: PartitionRecords): ProduceOutcome {
  return unwritten(`${partitionName(item)} has no leader, or does not exist`, {
    isSent: false,
    errorCode: errorCodes.LEADER_NOT_AVAILABLE,
  })
}
