import { decodeCommitMetadata, encodeCommitMetadata } from './commit-metadata.ts'
import type { GroupCommit } from './group-state.ts'

/** Where a group stands in a partition. */
export type GroupPlace = {
  readonly topic: string
  readonly partition: number
  /** -1: nowhere yet. */
  readonly offset: number
  /** Of the records from `offset` on, those that are settled. */
  readonly settledAbove: ReadonlySet<number>
  /** Whoever read it has finished all that it had begun. */
  readonly isFinal: boolean
  readonly epoch: number
  /** Of the log that the offset is of, where it is known. */
  readonly topicId: string | undefined
}

export function placeOf({ topic, partition, offset: text, metadata }: GroupCommit): GroupPlace {
  const offset = Number(text)
  const memory = decodeCommitMetadata(offset, metadata)
  const hasBegun = memory?.begunBelow !== undefined && memory.begunBelow > offset
  return {
    topic,
    partition,
    offset,
    settledAbove: new Set(memory?.settledAbove),
    isFinal: offset < 0 || (memory?.isFinal === true && !hasBegun),
    epoch: memory?.epoch ?? 0,
    topicId: memory?.topicId,
  }
}

/** What `placeOf` reads as the same place. Of what is settled far above the offset nothing is remembered. */
export function commitOf({
  topic,
  partition,
  offset,
  settledAbove,
  ...mark
}: Omit<GroupPlace, 'topicId'>): GroupCommit {
  const metadata = encodeCommitMetadata(offset, settledAbove, mark)
  return { topic, partition, offset: String(offset), metadata }
}
