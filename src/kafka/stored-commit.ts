import { type CommitMemory, decodeCommitMetadata } from './commit-metadata.ts'

/** The group's commit for a partition. The offset is -1 if there is none. */
export type StoredCommit = {
  readonly offset: number
  readonly metadata: string | null
  /** The leader epoch of the record before the offset; -1 or absent if it isn't known. */
  readonly leaderEpoch?: number
}

/** The log that a partition is read from, as far as its owner knows it. */
export type KnownLog = {
  /** The topic's id in 22 characters; `undefined` if the brokers have none. */
  readonly topicId: string | undefined
  /** Returns the leader epoch of the last record before `offset`; -1 if it isn't known. */
  leaderEpochBefore(offset: number): number
}

export const noCommit: StoredCommit = { offset: -1, metadata: null }

/**
 * Decodes what the previous owner stored in the metadata of its commit. `undefined` when there is no commit
 * or another program wrote it.
 */
export function memoryOf(stored: StoredCommit): CommitMemory | undefined {
  return stored.offset < 0 ? undefined : decodeCommitMetadata(stored.offset, stored.metadata)
}
