import type { Judgement } from '../../message/judgement.ts'
import { type Entry, isReportedBefore, type PropertyEntry, reportedAnew } from '../store/entry.ts'
import { deleteOf, identifyOf } from '../records/made-message.ts'
import type { DeletionFloor } from '../records/state-record.ts'
import { compareVersions, formatVersion, parseVersion, type PropertyStateKey } from '../records/version.ts'
import type { PropertyHeader } from '../../message/record-headers.ts'

/** The state of a property and of its user at the time of the decision. */
export type KnownOfProperty = {
  /** The last entry of the property that Kafka has acknowledged. */
  readonly held: Entry | undefined
  /** The last entry of the user's deletion floor that Kafka has acknowledged. */
  readonly floor: Entry | undefined
  /** True if a server may still act on an earlier attempt of the Identify. */
  readonly isUncertain: boolean
}

/**
 * Decides about an Identify that waited: it is sent, it is dropped, or the present value is sent instead. An
 * Identify is dropped if a newer value has superseded it. But if the Identify is uncertain, a server may act
 * on it late, so the newer value is sent in its place. `since` is the version with which the Identify's value
 * was first sent.
 */
export function judgeProperty(
  { userId, spaceId, property, since }: PropertyHeader,
  { held, floor, isUncertain }: KnownOfProperty,
): Judgement {
  const stateKey: PropertyStateKey = { kind: 'property', userId, spaceId, property }
  const reported = parseVersion(since)
  if (reported === undefined) return { kind: 'send' }
  const upToMs = floor?.kind === 'deletion' ? floor.state.requestedAtMs : -Infinity
  const alive = held?.kind === 'property' && held.state.version.atMs > upToMs ? held : undefined
  if (floor?.kind === 'deletion' && reported.atMs <= upToMs) {
    if (!isUncertain) return { kind: 'suppressed' }
    // The server may have acted on the Identify after the `delete`, so another `delete` is sent.
    if (alive === undefined) return deleteAfter(stateKey, floor.state, since)
    return sendCurrent(stateKey, isReportedBefore(alive, upToMs) ? reportedAnew(alive) : alive)
  }
  if (alive === undefined) return { kind: 'send' }
  const order = compareVersions(reported, alive.state.since)
  if (order === 0 || compareVersions(reported, alive.state.version) > 0) return { kind: 'send' }
  // The version of this Identify is higher than the present value's `since`, and not higher than the present
  // value's `version`. So another owner has sent this Identify's value in between. The present value is sent
  // again, because it may have been sent only before that.
  if (order > 0) return sendCurrent(stateKey, reportedAnew(alive))
  return isUncertain ? sendCurrent(stateKey, alive) : { kind: 'superseded' }
}

function deleteAfter({ userId, spaceId }: PropertyStateKey, floor: DeletionFloor, since: string): Judgement {
  const { messageId, body } = deleteOf({ userId, sourceId: spaceId }, floor)
  return { kind: 'send_current', messageId, body, since }
}

function sendCurrent(stateKey: PropertyStateKey, { state }: PropertyEntry): Judgement {
  return { kind: 'send_current', ...identifyOf(stateKey, state), since: formatVersion(state.since) }
}
