import { decodeCommitMetadata, encodeCommitMetadata } from './commit-metadata.ts'
import type { GroupCommit } from './group-state.ts'

/** The position of a group in a partition. */
export type GroupPlace = {
  readonly topic: string
  readonly partition: number
  /** The committed offset. -1 if nothing is committed yet. */
  readonly offset: number
  /** The offsets above `offset` whose records are settled. */
  readonly settledAbove: ReadonlySet<number>
  /** True if the last owner has finished all that it had started, or if there was no owner. */
  readonly isFinal: boolean
  readonly epoch: number
  /** The topic's id when the offset was committed, if known. */
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

/**
 * Returns a commit from which `placeOf` reads this place again. Leaves out settled offsets that are too far
 * above the committed offset for the metadata.
 */
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
