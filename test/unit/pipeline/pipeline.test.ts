import type { HeldRecord, RecordContent } from '../../../src/message/held-record.ts'
import { roomyBulkhead } from '../../support/bulkhead.ts'
import { describe, expect, test } from 'vitest'
import type { DestinationDefinition } from '../../../src/delivery/endpoint.ts'
import { defaultLimits, type MessageLimits } from '../../../src/message/limits.ts'
import { createPipeline } from '../../../src/pipeline/pipeline.ts'
import { encodeRetryState } from '../../../src/retry/retry-state.ts'
import { until } from '../../support/until.ts'
import type { OutboundRecord } from '../../../src/pipeline/pipeline-ports.ts'

/**
 * Tests of records that cause no request, and of the topics to which they go. A function takes the place of
 * Kafka, and says which records it takes.
 */

const nowMs = 1_700_000_000_000
const hour = 3_600_000
const paused: DestinationDefinition = {
  id: 'crm',
  state: 'paused',
  maxInFlight: 1,
  strategy: 'all',
  filter: undefined,
  sharedSecret: undefined,
  nextSharedSecret: undefined,
  standardWebhooks: false,
  rateLimit: undefined,
  hooks: [],
}

type Takes = (record: OutboundRecord) => boolean

/** Gives a pipeline one record. Resolves when the record is settled, or when nothing more happens to it. */
async function given(
  content: RecordContent,
  {
    topic = 'events',
    takes = () => true,
    limits = defaultLimits,
    state = 'paused',
    timestampMs = nowMs,
  }: {
    topic?: string
    takes?: Takes
    limits?: MessageLimits
    state?: 'paused' | 'off'
    timestampMs?: number
  } = {},
) {
  const written: OutboundRecord[] = []
  const deadReasons: string[] = []
  const destination = { ...paused, state }
  let settled = 0
  const pipeline = createPipeline({
    catalog: () => ({
      sources: new Map([['shop', { enabled: true }]]),
      destinations: new Map([['crm', destination]]),
      destinationsBySource: new Map([['shop', [destination]]]),
    }),
    sender: {
      post() {
        throw new Error('nothing is sent here')
      },
      async close() {},
    },
    outlet: {
      async produce(record) {
        if (!takes(record)) return 'refused'
        written.push(record)
        return 'acknowledged'
      },
    },
    observer: {
      attempted() {},
      firstTried() {},
      omitted() {},
      delivered() {},
      parked() {},
      deadLettered: (reason) => deadReasons.push(reason),
      notRouted() {},
      dropped() {},
      unknownSource() {},
      repeated() {},
      failed() {},
    },
    ladder: { waitsMs: [60_000], thenMs: 60_000, limitMs: 4 * hour },
    topics: { events: 'events', retryPrefix: 'retry.', replays: 'replays', deadLetters: 'dead-letters' },
    limits,
    maxInFlight: 10,
    laneWaitMs: 1_000,
    lanePatienceMs: 100,
    bulkhead: roomyBulkhead,
    namesRequests: false,
    breaker: { failureShare: 0.5, minResults: 10, windowMs: 1_000, openMs: 1_000, maxOpenMs: 1_000 },
    buffer: { records: 100, bytes: 1_000_000 },
    onPressure() {},
    onCongested() {},
    now: () => nowMs,
  })
  const record: HeldRecord = {
    topic,
    partition: 2,
    offset: 7,
    timestampMs,
    isLate: false,
    isAbandoned: false,
    settle: () => settled++,
    giveBack() {},
  }
  pipeline.accept(record, content)
  const heldBytes = pipeline.held.bytes
  await pipeline.drain()
  await until('it is settled', () => settled === 1)
  pipeline.stop()
  expect(pipeline.held).toEqual({ records: 0, bytes: 0 })
  expect(written).toHaveLength(1)
  const [letter] = written
  if (letter === undefined) throw new Error('nothing was written')
  return { letter, deadReasons, heldBytes }
}

const headers = { 'source-id': 'shop' }
const page = Buffer.from('{"type":"page","userId":"u"}')
const key = Buffer.from('u')
const retryHeaders = encodeRetryState({
  sourceId: 'shop',
  destinationId: 'crm',
  messageId: 'm',
  kind: 'page',
  nextRung: 3,
  attempts: 2,
  firstSeenMs: nowMs - hour,
  expiresAtMs: nowMs + hour,
  failedHooks: [],
  notBeforeMs: new Map(),
  lastOutcome: 'status 500',
  origin: { topic: 'events', partition: 2, offset: 1 },
})
const sizeOf = ({ key: k, value, headers: h }: OutboundRecord) =>
  (k?.length ?? 0) + (value?.length ?? 0) + JSON.stringify(h).length
const onlyDeadLetters: Takes = ({ topic }) => topic === 'dead-letters'
const upTo =
  (bytes: number): Takes =>
  (record) =>
    sizeOf(record) <= bytes

describe('a dead letter is written', () => {
  const value = Buffer.alloc(5_000, '!')

  test('as the record was, with what it came from and the reason', async () => {
    const { letter } = await given({ key, value, headers })
    expect(letter).toEqual({
      topic: 'dead-letters',
      partition: 2,
      key,
      value,
      headers: {
        'source-id': 'shop',
        reason: 'not_json',
        detail: 'Send the value as one JSON object, and nothing else.',
        origin: 'events/2/7',
        'first-seen': String(nowMs),
      },
    })
  })

  test('without its value, when Kafka takes no more', async () => {
    const { letter } = await given({ key, value, headers }, { takes: upTo(1_000) })
    expect(letter).toMatchObject({ key, value: null, headers: { reason: 'not_json', origin: 'events/2/7' } })
    expect(letter.headers['value-omitted']).toContain('its origin has it')
    expect(letter.headers['key-omitted']).toBeUndefined()
  })

  test('without its key too, when Kafka takes no more', async () => {
    const { letter } = await given({ key: value, value, headers }, { takes: upTo(1_000) })
    expect(letter).toMatchObject({ key: null, value: null, headers: { reason: 'not_json' } })
    expect(letter.headers['value-omitted']).toContain('its origin has it')
    expect(letter.headers['key-omitted']).toContain('its origin has it')
  })

  test.each([
    ['source-id of a megabyte', { 'source-id': 's'.repeat(1_000_000) }],
    ['source-id that is no UTF-8', { 'source-id': Buffer.alloc(300_000, 0xff) }],
  ])('when its header is a %s', async (_what, large) => {
    const { letter } = await given({ key, value: page, headers: large }, { takes: upTo(5_000) })
    expect(letter).toMatchObject({ value: page, headers: { reason: 'unknown_source' } })
    expect(letter.headers['detail']).toMatch(/^the catalog has no source "[^"]{100}"…, whose id is too long$/)
    expect(sizeOf(letter)).toBeLessThan(2_500)
  })

  test('of a record of a time that can not be', async () => {
    const { letter } = await given({ key, value: null, headers }, { timestampMs: -1 })
    expect(letter.headers).toMatchObject({ reason: 'empty_value', 'first-seen': '0' })
  })

  test('of one that Kafka could not give us', async () => {
    const { letter } = await given({ key: null, value: null, headers: {}, unreadable: 'offsets 3 to 7: why' })
    expect(letter.headers).toMatchObject({
      reason: 'unreadable_batch',
      detail: 'offsets 3 to 7: why',
      origin: 'events/2/7',
    })
  })

  test('of one at which the code fails, with the place and without what the record holds', async () => {
    const limits: MessageLimits = {
      ...defaultLimits,
      get maxBytes(): number {
        throw new TypeError('hunter2')
      },
    }
    const { letter } = await given({ key, value: page, headers }, { limits })
    expect(letter).toMatchObject({ key, value: page, headers: { reason: 'internal_error' } })
    expect(letter.headers['detail']).toMatch(/please report it with the record: TypeError at .*\.ts:\d+/)
    expect(JSON.stringify(letter.headers)).not.toContain('hunter2')
  })

  test('of a message that is too large with its key', async () => {
    const limits = { ...defaultLimits, maxBytes: 1_000 }
    const large = await given({ key: Buffer.alloc(900), value: page, headers }, { limits })
    expect(large.letter.headers).toMatchObject({
      reason: 'body_too_large',
      detail: 'Send less: with its key of 900 bytes the message is over 1000 bytes.',
    })
    const small = await given({ key: Buffer.alloc(800), value: page, headers }, { limits })
    expect(small.letter.topic).toBe('retry.1m')
  })
})

test.each([
  ['no source-id', {}],
  ['a source-id without a value', { 'source-id': null }],
  ['an empty source-id', { 'source-id': '' }],
  ['a list of source-ids that begins with none', { 'source-id': [null, 'shop'] }],
])('a record with %s is a dead letter', async (_what, received) => {
  const { letter } = await given({ key, value: page, headers: received })
  expect(letter.headers).toMatchObject({ reason: 'no_source' })
})

test('of several source-ids the first counts', async () => {
  const { letter } = await given({
    key,
    value: page,
    headers: { 'source-id': [Buffer.from('shop'), 'other'] },
  })
  expect(letter).toMatchObject({ topic: 'retry.1m', headers: { 'source-id': 'shop' } })
})

test('the key counts among the bytes that are held', async () => {
  const without = await given({ key: null, value: page, headers })
  const withKey = await given({ key: Buffer.alloc(1_234), value: page, headers })
  expect(withKey.heldBytes - without.heldBytes).toBe(1_234)
})

describe('a delivery that its retry topic has no room for', () => {
  test('is a dead letter that says so, with all that it carried', async () => {
    const { letter, deadReasons } = await given({ key, value: page, headers }, { takes: onlyDeadLetters })
    expect(letter).toMatchObject({
      topic: 'dead-letters',
      key,
      headers: { reason: 'record_too_large', 'destination-id': 'crm', origin: 'events/2/7' },
    })
    expect(letter.value?.toString()).toContain('"type":"page"')
    expect(deadReasons).toEqual(['record_too_large'])
  })
})

function retried(content: Partial<RecordContent>, options: Parameters<typeof given>[1] = {}) {
  return given({ key, value: page, headers: retryHeaders, ...content }, { topic: 'retry.1m', ...options })
}

describe('a record of a retry topic', () => {
  test('goes on with the rung that it names', async () => {
    const { letter } = await retried({})
    expect(letter).toMatchObject({ topic: 'retry.1m', value: page, headers: { rung: '4', attempts: '2' } })
  })

  test.each([null, Buffer.alloc(0)])('without a message (%j) is a dead letter', async (value) => {
    const { letter } = await retried({ value })
    expect(letter.headers).toMatchObject({ reason: 'bad_retry_headers', detail: 'the record has no value' })
  })

  test('with damaged headers is a dead letter that keeps those that can be read', async () => {
    const { letter } = await retried({ headers: { ...retryHeaders, rung: 'x', attempts: null } })
    const { rung: _rung, attempts: _attempts, origin, 'first-seen': _first, ...rest } = retryHeaders
    expect(letter).toMatchObject({
      key,
      value: page,
      headers: {
        ...rest,
        rung: 'x',
        reason: 'bad_retry_headers',
        detail: 'headers: rung is not a whole number, attempts is missing',
        origin: 'retry.1m/2/7',
        'carried-origin': origin,
      },
    })
  })

  test('never goes on for longer than the ladder, whatever it says', async () => {
    const { letter } = await retried(
      { headers: { ...retryHeaders, 'expires-at': String(Number.MAX_SAFE_INTEGER) } },
      { state: 'off' },
    )
    expect(letter.headers).toMatchObject({
      reason: 'destination_off',
      'expires-at': String(nowMs + 4 * hour),
    })
  })
})
