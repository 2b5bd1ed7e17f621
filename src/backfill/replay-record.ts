import { identifyOf } from '../audience/records/made-message.ts'
import { formatVersion } from '../audience/records/version.ts'
import { encodeRetryState } from '../retry/retry-state.ts'
import type { HeldState } from '../audience/store/states-page.ts'
import type { OutboundRecord } from '../message/records.ts'

/** A record for the topic `replays`. */
export type ReplayRecord = OutboundRecord & { readonly key: Buffer; readonly value: Buffer }

/**
 * Returns the record with the Identify of a state for one destination. The Identify is the same that was sent
 * when the value came about, so a receiver that already has it recognizes the `messageId`. The retry state in
 * the record has no wait and no attempts. If the user is deleted or a newer value arrives before the Identify
 * is sent, the worker drops the record.
 */
export function replayOf(
  { stateKey, state, offset, timestampMs }: HeldState & { readonly timestampMs: number },
  {
    unit,
    destinationId,
    topics,
  }: {
    unit: number
    destinationId: string
    topics: { readonly memberships: string; readonly replays: string }
  },
): ReplayRecord {
  const { userId, spaceId, property } = stateKey
  const { messageId, body } = identifyOf(stateKey, state)
  return {
    topic: topics.replays,
    partition: unit,
    key: Buffer.from(userId),
    value: body,
    headers: encodeRetryState({
      sourceId: spaceId,
      destinationId,
      messageId,
      kind: 'identify',
      nextRung: 0,
      attempts: 0,
      firstSeenMs: timestampMs,
      expiresAtMs: 0,
      failedHooks: [],
      notBeforeMs: new Map(),
      lastOutcome: '',
      origin: { topic: topics.memberships, partition: unit, offset },
      property: { userId, spaceId, property, since: formatVersion(state.since) },
      isUncertain: false,
    }),
  }
}
