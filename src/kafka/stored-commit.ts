import { type CommitMemory, decodeCommitMetadata } from './commit-metadata.ts'

/** What the group has for a partition; offset -1 where it has nothing. */
export type StoredCommit = {
  readonly offset: number
  readonly metadata: string | null
  /** In which the record before the offset was written; -1 or absent where that isn't known. */
  readonly leaderEpoch?: number
}

/** The log that a partition is read from, as far as its owner knows it. */
export type KnownLog = {
  /** In 22 characters; `undefined` where the brokers have none. */
  readonly topicId: string | undefined
  /** In which the last record before `offset` was written; -1 where that isn't known. */
  leaderEpochBefore(offset: number): number
}

export const noCommit: StoredCommit = { offset: -1, metadata: null }

/** What an owner has left with its commit; `undefined` where there is none, or another program wrote it. */
export function memoryOf(stored: StoredCommit): CommitMemory | undefined {
  return stored.offset < 0 ? undefined : decodeCommitMetadata(stored.offset, stored.metadata)
}
