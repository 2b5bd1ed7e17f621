import { describe, expect, test } from 'vitest'
import { defaultLimits } from '../../../src/message/limits.ts'
import { partitionOf } from '../../../src/message/partitioner.ts'
import type { Choice, Chosen, SourceRecord } from '../../../src/replay/chosen.ts'
import { chooseEvent } from '../../../src/replay/event.ts'
import { chooseLetter } from '../../../src/replay/letter.ts'
import { decodeRetryState, encodeRetryState } from '../../../src/retry/retry-state.ts'

const topics = {
  events: 's.events',
  audienceChanges: 's.audience-changes',
  deletions: 's.deletions',
  deadLetters: 's.dead-letters',
  replays: 's.replays',
}
const destinations: ReturnType<Choice['catalog']>['destinations'] = new Map([
  ['crm', { id: 'crm', state: 'on', sources: ['shop', 'closed'] }],
  ['away', { id: 'away', state: 'off', sources: ['shop', 'resting'] }],
  ['waits', { id: 'waits', state: 'paused', sources: ['shop'] }],
  ['failing', { id: 'failing', state: 'auto_paused', sources: ['shop'] }],
  [
    'orders',
    {
      id: 'orders',
      state: 'on',
      sources: ['shop', 'tills'],
      filter: { types: undefined, events: ['Order'] },
    },
  ],
])
const catalog: ReturnType<Choice['catalog']> = {
  sources: new Map([
    ['shop', { enabled: true }],
    ['closed', { enabled: false }],
    ['space', { enabled: true, kind: 'audiences' }],
    // Its only destination is off.
    ['resting', { enabled: true }],
    // Its only destination has a filter.
    ['tills', { enabled: true }],
    ['alone', { enabled: true }],
  ]),
  destinations,
  destinationsBySource: new Map(
    ['shop', 'closed', 'resting', 'tills'].map((id) => [
      id,
      [...destinations.values()].filter(({ sources }) => sources.includes(id)),
    ]),
  ),
}

function choiceOf(selection: Choice['selection']): Choice {
  return { selection, jobId: 'job-1', topics, catalog: () => catalog, limits: defaultLimits, partitions: 6 }
}

const state = {
  sourceId: 'shop',
  destinationId: 'crm',
  messageId: 'm-1',
  kind: 'identify',
  nextRung: 7,
  waits: 2,
  attempts: 25,
  firstSeenMs: 1_000,
  expiresAtMs: 2_000,
  failedHooks: ['main'],
  unsentHooks: ['other'],
  notBeforeMs: new Map([['main', 3_000]]),
  lastOutcome: 'status 500',
  origin: { topic: 's.events', partition: 3, offset: 42 },
  property: { userId: 'u1', spaceId: 'space', property: 'vip', since: '1000.1.3.42' },
  isUncertain: true,
}

function letter(headers: Record<string, string> = {}, given: Partial<SourceRecord> = {}): SourceRecord {
  return {
    partition: 3,
    offset: 7,
    timestampMs: 5_000,
    key: Buffer.from('u1'),
    value: Buffer.from('{"type":"identify"}'),
    headers: { ...encodeRetryState(state), reason: 'expired', detail: 'd', ...headers },
    ...given,
  }
}

function sent(chosen: Chosen) {
  if (chosen.kind !== 'send') throw new Error(`it is ${JSON.stringify(chosen)}`)
  const [record, ...others] = chosen.records
  if (record === undefined || others.length > 0) throw new Error(`it is ${chosen.records.length} records`)
  return record
}

describe('a dead letter of a delivery', () => {
  test('begins anew in replays: its tries, its expiry and its failed hooks are cleared, and nothing else', () => {
    const record = sent(chooseLetter(letter(), choiceOf({ from: 'dead-letters' })))
    expect(record).toMatchObject({ topic: 's.replays', key: Buffer.from('u1') })
    expect(record.value?.toString()).toBe('{"type":"identify"}')
    expect(decodeRetryState(record.headers)).toEqual({
      ok: true,
      state: {
        ...state,
        nextRung: 0,
        waits: 0,
        attempts: 0,
        expiresAtMs: 0,
        failedHooks: [],
        unsentHooks: [],
        notBeforeMs: new Map(),
        lastOutcome: '',
        isDelivered: false,
        isUnjudged: false,
        replayJob: 'job-1',
      },
    })
    expect(record.headers).not.toHaveProperty('reason')
  })

  test.each([
    [{ destinationId: 'crm' }, true],
    [{ destinationId: 'erp' }, false],
    [{ sourceId: 'shop' }, true],
    [{ sourceId: 'other' }, false],
    [{ reason: 'expired' }, true],
    [{ reason: 'failed_for_good' }, false],
    [{ messageId: 'm-1' }, true],
    [{ messageId: 'm-2' }, false],
    [{ fromMs: 5_000 }, true],
    [{ fromMs: 5_001 }, false],
    [{ toMs: 5_000 }, false],
    [{ toMs: 5_001 }, true],
  ])('asked for by %o: %s', (asked, isSent) => {
    expect(chooseLetter(letter(), choiceOf({ from: 'dead-letters', ...asked })).kind).toBe(
      isSent ? 'send' : 'no',
    )
  })

  test.each([
    ['destination_removed', letter({ 'destination-id': 'gone' })],
    ['destination_off', letter({ 'destination-id': 'away' })],
    ['auto_paused', letter({ 'destination-id': 'failing' })],
    ['value_omitted', letter({ 'value-omitted': 'too large' }, { value: null })],
    ['not_replayable', letter({ attempts: 'many' })],
    ['unreadable', letter({}, { unreadable: 'damaged' })],
  ])('is left out as %s', (why, given) => {
    expect(chooseLetter(given, choiceOf({ from: 'dead-letters' }))).toEqual({ kind: 'left_out', why })
  })

  test('of a paused destination is sent: it waits there', () => {
    const given = letter({ 'destination-id': 'waits' })
    expect(chooseLetter(given, choiceOf({ from: 'dead-letters' })).kind).toBe('send')
  })
})

function refused(origin: string, headers: Record<string, string> = {}): SourceRecord {
  const own = {
    'source-id': 'shop',
    reason: 'not_json',
    detail: 'd',
    origin,
    'first-seen': '1',
    ...headers,
  }
  return letter({}, { headers: own })
}

function event(message: object, sourceId = 'shop'): SourceRecord {
  return letter(
    {},
    {
      headers: { 'source-id': sourceId },
      value: Buffer.from(JSON.stringify({ type: 'track', event: 'E', userId: 'u1', ...message })),
    },
  )
}

test('a value of an audience goes to the unit that has its user now, and another message to where it was', () => {
  const { property: _none, ...plain } = state
  const partitions = [state, plain].map((given) => {
    const headers = { ...encodeRetryState(given), reason: 'expired' }
    return sent(chooseLetter(letter({}, { headers }), choiceOf({ from: 'dead-letters' }))).partition
  })
  expect(partitions).toEqual([partitionOf('u1', 6), 3])
})

describe('a dead letter without a destination', () => {
  const track = { type: 'track', event: 'E', userId: 'u1', messageId: 'm-1' }
  const refusedEvent = (message: object = track, headers: Record<string, string> = {}): SourceRecord => ({
    ...refused('s.events/3/42', headers),
    value: Buffer.from(JSON.stringify(message)),
  })

  test('of an event goes to each destination of its source, with the time at which it came first', () => {
    const chosen = chooseLetter(refusedEvent(), choiceOf({ from: 'dead-letters' }))
    const records = chosen.kind === 'send' ? chosen.records : []
    expect(records).toMatchObject(
      ['crm', 'waits', 'failing'].map((id) => ({
        topic: 's.replays',
        partition: 3,
        key: Buffer.from('u1'),
        headers: { 'destination-id': id },
      })),
    )
    for (const { headers, value } of records) {
      expect(decodeRetryState(headers)).toMatchObject({
        ok: true,
        state: {
          sourceId: 'shop',
          messageId: 'm-1',
          kind: 'track',
          firstSeenMs: 1,
          attempts: 0,
          origin: { topic: 's.events', partition: 3, offset: 42 },
          replayJob: 'job-1',
        },
      })
      expect(JSON.parse(String(value))).toMatchObject({ ...track, version: 1 })
    }
  })

  test('of an event without an id or a time has those that its first delivery would have had', () => {
    const given = refusedEvent({ type: 'track', event: 'Order', userId: 'u1' }, { 'source-id': 'tills' })
    const { headers, value } = sent(chooseLetter(given, choiceOf({ from: 'dead-letters' })))
    expect(headers['message-id']).toBe('s.events-3-42')
    expect(JSON.parse(String(value))).toMatchObject({ timestamp: '1970-01-01T00:00:00.001Z' })
  })

  test.each([
    ['unreadable', refusedEvent({ type: 'nonsense' })],
    ['filtered', refusedEvent({ ...track, integrations: { All: false } })],
    ['filtered', refusedEvent(track, { 'source-id': 'tills' })],
    ['destination_off', refusedEvent(track, { 'source-id': 'resting' })],
    ['no_destination', refusedEvent(track, { 'source-id': 'alone' })],
    ['source_off', refusedEvent(track, { 'source-id': 'closed' })],
  ])('of an event is left out as %s', (why, given) => {
    expect(chooseLetter(given, choiceOf({ from: 'dead-letters' }))).toEqual({ kind: 'left_out', why })
  })

  test('goes back to audience-changes with its source alone: no worker believes other headers there', () => {
    const record = sent(chooseLetter(refused('s.audience-changes/3/42'), choiceOf({ from: 'dead-letters' })))
    expect(record).toMatchObject({ topic: 's.audience-changes', partition: 3 })
    expect(record.headers).toEqual({ 'source-id': 'shop' })
  })

  test('of a space that is disabled goes back: its values are kept for later', () => {
    const given = refused('s.audience-changes/3/42', { 'source-id': 'closed' })
    expect(chooseLetter(given, choiceOf({ from: 'dead-letters' })).kind).toBe('send')
  })

  test('goes back to deletions', () => {
    const { 'source-id': _none, ...headers } = refused('s.deletions/3/42').headers ?? {}
    const record = sent(chooseLetter(letter({}, { headers }), choiceOf({ from: 'dead-letters' })))
    expect(record).toMatchObject({ topic: 's.deletions', headers: {} })
    expect(record.headers).toEqual({})
  })

  test.each([
    ['source_unknown', refused('s.events/3/42', { 'source-id': 'nobody' })],
    ['source_off', refused('s.events/3/42', { 'source-id': 'closed' })],
    ['not_replayable', refused('s.events/3/42', { 'source-id': '' })],
    // A replay would let an older state take the place of a newer one.
    ['not_replayable', refused('s.memberships/3/42')],
    ['not_replayable', refused('s.retry.1m/3/42')],
    ['not_replayable', refused('other.events/3/42')],
    ['not_replayable', refused('s.audience-changes/3/42', { reason: 'sync_incomplete' })],
    ['not_replayable', refused('s.audience-changes/3/42', { 'source-id': '' })],
    ['source_unknown', refused('s.audience-changes/3/42', { 'source-id': 'nobody' })],
    ['not_replayable', refused('nonsense')],
  ])('is left out as %s', (why, given) => {
    expect(chooseLetter(given, choiceOf({ from: 'dead-letters' }))).toEqual({ kind: 'left_out', why })
  })
})

describe('an event', () => {
  const toCrm = choiceOf({ from: 'events', destinationId: 'crm' })

  test('goes to the one destination, in canonical form, with the time that it was taken at', () => {
    const record = sent(chooseEvent(event({ messageId: 'm-1' }), toCrm))
    expect(record).toMatchObject({ topic: 's.replays', partition: 3 })
    expect(decodeRetryState(record.headers)).toMatchObject({
      ok: true,
      state: {
        sourceId: 'shop',
        destinationId: 'crm',
        messageId: 'm-1',
        kind: 'track',
        firstSeenMs: 5_000,
        attempts: 0,
        origin: { topic: 's.events', partition: 3, offset: 7 },
        replayJob: 'job-1',
      },
    })
    expect(JSON.parse(String(record.value))).toMatchObject({ version: 1, messageId: 'm-1', context: {} })
  })

  test('without an id has the one that its first delivery had', () => {
    expect(sent(chooseEvent(event({}), toCrm)).headers['message-id']).toBe('s.events-3-7')
    const byId = choiceOf({ from: 'events', destinationId: 'crm', messageId: 's.events-3-7' })
    expect(chooseEvent(event({}), byId).kind).toBe('send')
  })

  test.each([
    ['m-1', '"\\u006d-1"'],
    ['m-1', '"\\u006D\\u002d\\u0031"'],
    ['a/b', '"a\\/b"'],
    ['é', '"\\u00e9"'],
  ])('is found by its id %s, however JSON spells it (%s)', (messageId, spelled) => {
    const value = Buffer.from(`{"type":"track","event":"E","userId":"u1","messageId":${spelled}}`)
    const byId = choiceOf({ from: 'events', destinationId: 'crm', messageId })
    const record = sent(chooseEvent({ ...event({}), value }, byId))
    expect(JSON.parse(String(record.value))).toMatchObject({ messageId })
  })

  test.each([
    ['no', event({}, 'other'), toCrm],
    ['no', event({ messageId: 'm-1' }), choiceOf({ from: 'events', destinationId: 'crm', messageId: 'm-2' })],
    // The message has this id in another field.
    [
      'no',
      event({ messageId: 'm-1', event: 'm-2' }),
      choiceOf({ from: 'events', destinationId: 'crm', messageId: 'm-2' }),
    ],
    ['no', event({}), choiceOf({ from: 'events', destinationId: 'crm', fromMs: 5_001 })],
    ['source_off', event({}, 'closed'), toCrm],
    ['unreadable', event({ type: 'nonsense' }), toCrm],
    ['filtered', event({ integrations: { All: false } }), toCrm],
    ['filtered', event({}), choiceOf({ from: 'events', destinationId: 'orders' })],
    ['send', event({ event: 'Order' }), choiceOf({ from: 'events', destinationId: 'orders' })],
    ['destination_off', event({}), choiceOf({ from: 'events', destinationId: 'away' })],
    ['auto_paused', event({}), choiceOf({ from: 'events', destinationId: 'failing' })],
    ['destination_removed', event({}), choiceOf({ from: 'events', destinationId: 'gone' })],
  ])('gives: %s', (why, given, choice) => {
    const chosen = chooseEvent(given, choice)
    expect(chosen.kind === 'left_out' ? chosen.why : chosen.kind).toBe(why)
  })
})
