import { type CommitMemory, decodeCommitMetadata } from './commit-metadata.ts'

/** The group's commit for a partition. The offset is -1 if the group has no commit. */
export type StoredCommit = {
  readonly offset: number
  readonly metadata: string | null
  /** The leader epoch of the record before the offset. -1 or absent if this epoch isn't known. */
  readonly leaderEpoch?: number
  /** Present if the metadata was written for another commit. `metadata` then has only what is believed. */
  readonly moved?: MovedCommit
}

/** The log that a partition is read from, as far as its owner knows it. */
export type KnownLog = {
  /** The topic's id in 22 characters. `undefined` if the brokers give topics no ids. */
  readonly topicId: string | undefined
  /** Returns the leader epoch of the last record before `offset`. Returns -1 if this epoch isn't known. */
  leaderEpochBefore(offset: number): number
}

export const noCommit: StoredCommit = { offset: -1, metadata: null }

/**
 * Decodes the metadata that the previous owner stored in its commit. Returns `undefined` if there is no
 * commit, if the metadata is damaged, or if another program wrote it.
 */
export function memoryOf(stored: StoredCommit): CommitMemory | undefined {
  return stored.offset < 0 ? undefined : decodeCommitMetadata(stored.offset, stored.metadata)
}

/** Says that the metadata of a commit was written for another commit. */
export type MovedCommit = {
  /** The offset for which the metadata was written. -1 if it was written for another partition or group. */
  readonly from: number
}
