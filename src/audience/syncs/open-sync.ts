import type { HeldRecord } from '../../message/held-record.ts'
import { partitionOf } from '../../message/partitioner.ts'
import type { Part } from '../records/change-record.ts'
import type { AudienceDeadReason } from '../../message/dead-letter-reasons.ts'
import type { Staging } from './staging.ts'
import type { Version } from '../records/version.ts'

/** A part of a sync that waits until the other parts have arrived, or until all parts are refused. */
type HeldPart = {
  readonly record: HeldRecord
  /** The number under which `Staging` keeps the bytes of the part. */
  readonly staged: number
  readonly key: Buffer | null
  readonly sourceId: string
}

/** A sync of which not all parts have arrived yet. */
export type OpenSync = {
  readonly mark: string
  /** The fields that all parts of the sync have in common. */
  readonly part: Part
  /**
   * The version of the sync. Its offset is the offset of the part that came first, which is the lowest offset
   * of all parts.
   */
  readonly version: Version
  /**
   * `firstMs`: the time at which the first part was appended, by the broker's clock. `takenMs`: the time at
   * which the first part arrived, by a monotonic clock. The two times are never compared with each other.
   */
  readonly firstMs: number
  readonly takenMs: number
  readonly digests: Map<number, { digest: string; staged: number }>
  held: HeldPart[]
  readonly staging: Staging
}

/**
 * Returns the reason why a part of a sync must be refused, or `undefined` if the part is valid. `timestampMs`
 * is the append time of the part.
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

/** Formats a timeout for the `detail` of dead letters. */
export function inWords(timeoutMs: number): string {
  const minutes = timeoutMs / 60_000
  return Number.isInteger(minutes) && minutes > 1 ? `${minutes} minutes` : `${timeoutMs / 1_000} seconds`
}
