import { type Deletion, deletionCheck } from '../../message/deletion.ts'
import type { MessageLimits } from '../../message/limits.ts'
import { readJson, type AudienceRefusal, faultOf, refusal, readTime } from './record-json.ts'

export type DeletionRequest = {
  readonly requestId: string
  readonly userId: string
  readonly sources: readonly string[]
  readonly requestedAtMs: number
}

/** A deletion request whose record is in the partition of its user. */
export type PlacedDeletion = DeletionRequest & {
  /**
   * The partition and offset of the original record, if Sluice moved the request to this partition from
   * another one.
   */
  readonly origin: { readonly partition: number; readonly offset: number } | undefined
}

/**
 * Reads the value of a record of `deletions`. `appendedMs`: the append time of the record. Never throws,
 * whatever the bytes are.
 */
export function readDeletion(
  value: Uint8Array | null,
  appendedMs: number,
  limits: MessageLimits,
): { ok: true; request: DeletionRequest } | AudienceRefusal {
  const read = readJson(value, limits)
  if (!read.ok) return read
  const given: unknown = read.fields
  if (!isDeletion(given)) {
    const fault = faultOf(deletionCheck.Errors(given))
    return refusal('bad_deletion', `Send what schemas/deletion.schema.json describes: ${fault}.`)
  }
  const { requestId, userId, sources } = given
  const time = readTime('requestedAt', given.requestedAt, appendedMs)
  if (!time.ok) return time
  return { ok: true, request: { requestId, userId, sources, requestedAtMs: time.ms } }
}

function isDeletion(value: unknown): value is Deletion {
  return deletionCheck.Check(value)
}
