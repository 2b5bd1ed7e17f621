import { describe, expect, test } from 'vitest'
import { identifyOf } from '../../../src/audience/records/made-message.ts'
import { replayOf } from '../../../src/backfill/replay-record.ts'
import { decodeRetryState } from '../../../src/retry/retry-state.ts'

const topics = { memberships: 'sluice.memberships', replays: 'sluice.replays' }

describe('a record of a backfill', () => {
  const stateKey = { kind: 'property', userId: 'Zoë', spaceId: 'personas', property: '__proto__' } as const
  const state = {
    kind: 'audience',
    id: 'aud_1',
    name: 'Big spenders',
    value: 'true',
    version: { atMs: 9, isNative: true, partition: 3, offset: 8 },
    since: { atMs: 7, isNative: false, partition: 2, offset: 5 },
  } as const
  const record = replayOf(
    { stateKey, state, offset: 77, timestampMs: 1_234 },
    { unit: 3, destinationId: 'crm', topics },
  )

  test('is the Identify of its state, for one destination, as one that waits', () => {
    const { messageId, body } = identifyOf(stateKey, state)
    expect(record).toMatchObject({
      topic: 'sluice.replays',
      partition: 3,
      key: Buffer.from('Zoë'),
      value: body,
    })
    expect(decodeRetryState(record.headers)).toEqual({
      ok: true,
      state: {
        sourceId: 'personas',
        destinationId: 'crm',
        messageId,
        kind: 'identify',
        nextRung: 0,
        waits: 0,
        attempts: 0,
        firstSeenMs: 1_234,
        expiresAtMs: 0,
        failedHooks: [],
        unsentHooks: [],
        notBeforeMs: new Map(),
        lastOutcome: '',
        origin: { topic: 'sluice.memberships', partition: 3, offset: 77 },
        property: { userId: 'Zoë', spaceId: 'personas', property: '__proto__', since: '7.0.2.5' },
        isUncertain: false,
        isDelivered: false,
        isUnjudged: false,
        replayJob: '',
      },
    })
  })
})
