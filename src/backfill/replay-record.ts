import { identifyOf } from '../audience/made-message.ts'
import { formatVersion } from '../audience/version.ts'
import { type CarriedHeaders, encodeCarried } from '../retry/carried.ts'
import type { HeldState } from '../audience/states-page.ts'

/** A record for the topic `replays`. */
export type ReplayRecord = {
  readonly topic: string
  readonly partition: number
  readonly key: Buffer
  readonly value: Buffer
  readonly headers: CarriedHeaders
}

/**
 * The Identify of a state for one destination, the same that the state caused when it came about: a receiver
 * tells by the `messageId` that it has had it. It waits for no rung, has no attempts, and the worker drops it
 * where the user has been deleted or a newer value has been routed meanwhile.
 */
export function replayOf(
  { subject, state, offset, timestampMs }: HeldState & { readonly timestampMs: number },
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
  const { userId, spaceId, property } = subject
  const { messageId, body } = identifyOf(subject, state)
  return {
    topic: topics.replays,
    partition: unit,
    key: Buffer.from(userId),
    value: body,
    headers: encodeCarried({
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
