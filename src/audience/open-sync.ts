import type { HeldRecord } from '../message/held-record.ts'
import { partitionOf } from '../message/partitioner.ts'
import type { Part } from './change-record.ts'
import type { AudienceDeadReason } from '../message/dead-letter-reasons.ts'
import type { Staging } from './staging.ts'
import type { Version } from './version.ts'

/** A part that waits for the other parts, or to be refused with them. */
type HeldPart = {
  readonly record: HeldRecord
  /** The number under which the staging keeps the bytes of the part. */
  readonly staged: number
  readonly key: Buffer | null
  readonly sourceId: string
}

/** A sync that still lacks some of its parts. */
export type OpenSync = {
  readonly mark: string
  /** The fields that all parts have in common. */
  readonly part: Part
  /**
   * The version of the sync. Its offset is that of the part that came first, and so the lowest of all parts.
   */
  readonly version: Version
  /**
   * The times at which the first part was appended, by the broker's clock (`firstMs`), and at which it
   * arrived, by this machine's clock (`takenMs`). The two are never compared.
   */
  readonly firstMs: number
  readonly takenMs: number
  readonly digests: Map<number, { digest: string; staged: number }>
  held: HeldPart[]
  readonly staging: Staging
}

/**
 * Returns why a part of a sync must be refused, or `undefined`. `timestampMs` is when the part was appended.
 */
export function partFault(
  sync: OpenSync,
  part: Part,
  timestampMs: number,
  { unit, partitions, timeoutMs }: { unit: number; partitions: number; timeoutMs: number },
): { reason: AudienceDeadReason; detail: string } | undefined {
  const { parts, property, name } = sync.part
  if (timestampMs - sync.firstMs > timeoutMs) {
    return {
      reason: 'sync_incomplete',
      detail: `Send all parts of a sync within ${inWords(timeoutMs)}, with a new syncId.`,
    }
  }
  if (part.parts !== parts || part.property !== property || part.name !== name) {
    return {
      reason: 'sync_inconsistent',
      detail:
        'Use a new syncId for each sync: its parts differ in parts, or in the name or key of the audience.',
    }
  }
  if (part.userIds.some((userId) => partitionOf(userId, partitions) !== unit)) {
    return {
      reason: 'sync_wrong_partition',
      detail: `Write each user to the partition that Java's default partitioner (murmur2) chooses: part ${part.part} has others.`,
    }
  }
  return undefined
}

/** Formats a time as it is written in the details of dead letters. */
export function inWords(timeoutMs: number): string {
  const minutes = timeoutMs / 60_000
  return Number.isInteger(minutes) && minutes > 1 ? `${minutes} minutes` : `${timeoutMs / 1_000} seconds`
}
