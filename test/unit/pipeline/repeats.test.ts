import { roomyBulkhead } from '../../support/bulkhead.ts'
import { beforeEach, expect, test } from 'vitest'
import type { DestinationDefinition } from '../../../src/delivery/endpoint.ts'
import { defaultLimits } from '../../../src/message/limits.ts'
import { createPipeline } from '../../../src/pipeline/pipeline.ts'
import type { RepeatFilter } from '../../../src/pipeline/pipeline-ports.ts'
import { Repeats } from '../../../src/repeats/repeats.ts'
import { encodeRetryState } from '../../../src/retry/retry-state.ts'
import { until } from '../../support/until.ts'

/**
 * Tests of what the pipeline asks the filter of repeats, and of what it does with the answers. All routed
 * deliveries are parked, so nothing is sent.
 */

const nowMs = 1_700_000_000_000
let filter: RepeatFilter
let state: 'paused' | 'off'
let asked: string[]
let written: string[]
/** The offsets of the records that count as passed on. */
let passedOn: number[]
let repeats: string[]
let notRouted: number
let failures: unknown[]

beforeEach(() => {
  filter = new Repeats({ windowMs: 60_000, messages: 100 })
  state = 'paused'
  asked = []
  written = []
  passedOn = []
  repeats = []
  notRouted = 0
  failures = []
})

function destination(): DestinationDefinition {
  return {
    id: 'crm',
    state,
    maxInFlight: 1,
    strategy: 'all',
    filter: undefined,
    sharedSecret: undefined,
    nextSharedSecret: undefined,
    standardWebhooks: false,
    rateLimit: undefined,
    hooks: [],
  }
}

/** Takes records in the order of their offsets, from 0, and waits until each is settled. */
async function take(
  values: readonly (string | object)[],
  {
    topic = 'events',
    headers = { 'source-id': 'shop' },
  }: { topic?: string; headers?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  let settled = 0
  const pipeline = createPipeline({
    catalog: () => ({
      sources: new Map([['shop', { enabled: true }]]),
      destinations: new Map([['crm', destination()]]),
      destinationsBySource: new Map([['shop', [destination()]]]),
    }),
    sender: {
      post() {
        throw new Error('nothing is sent here')
      },
      async close() {},
    },
    outlet: {
      async produce({ topic: where, headers: letter, value }) {
        const { messageId }: { messageId?: string } = JSON.parse(String(value).replace(/^!$/, '{}'))
        written.push(`${where} ${letter['reason'] ?? ''} ${messageId}`)
        return 'acknowledged'
      },
    },
    observer: {
      attempted() {},
      firstTried() {},
      omitted() {},
      delivered() {},
      parked() {},
      deadLettered() {},
      notRouted: () => notRouted++,
      dropped() {},
      unknownSource() {},
      repeated: ({ offset }, sourceId, messageId) => repeats.push(`${sourceId} ${messageId} ${offset}`),
      failed: (error) => failures.push(error),
    },
    repeats: {
      isRepeat(record, sourceId, messageId) {
        asked.push(messageId)
        return filter.isRepeat(record, sourceId, messageId)
      },
    },
    ladder: { waitsMs: [60_000], thenMs: 60_000, limitMs: 3_600_000 },
    topics: { events: 'events', retryPrefix: 'retry.', replays: 'replays', deadLetters: 'dead-letters' },
    limits: defaultLimits,
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
  for (const [offset, value] of values.entries()) {
    const record = {
      topic,
      partition: 2,
      offset,
      timestampMs: nowMs,
      isLate: false,
      isAbandoned: false,
      passOn: () => passedOn.push(offset),
      settle: () => settled++,
      giveBack() {},
    }
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    pipeline.accept(record, { key: null, value: Buffer.from(text), headers })
  }
  await pipeline.drain()
  await until('all are settled', () => settled === values.length)
  pipeline.stop()
}

const page = { type: 'page', userId: 'u' }

test('a repeat is settled, and told', async () => {
  await take([
    { ...page, messageId: 'a' },
    { ...page, messageId: 'b' },
    { ...page, messageId: 'a' },
  ])
  expect(written).toEqual(['retry.1m  a', 'retry.1m  b'])
  expect(repeats).toEqual(['shop a 2'])
})

test('a message without a messageId is of its record alone: nothing is remembered of it', async () => {
  await take([page, { ...page, messageId: null }, { ...page, messageId: '' }])
  expect(written).toHaveLength(3)
  expect(asked).toEqual([])
})

test('what is refused is not remembered: once corrected, it is delivered', async () => {
  await take([
    { type: 'page', messageId: 'a' },
    { ...page, messageId: 'a' },
  ])
  expect(written).toEqual(['dead-letters no_user_anon_id a', 'retry.1m  a'])
})

test('what goes to nobody is not remembered: it may be sent again', async () => {
  state = 'off'
  await take([{ ...page, messageId: 'a' }])
  expect([notRouted, asked]).toEqual([1, []])
  state = 'paused'
  await take([{ ...page, messageId: 'a' }])
  expect(written).toEqual(['retry.1m  a'])
})

test('what is delivered or parked is passed on, and neither a repeat nor what is refused or goes to nobody', async () => {
  await take([
    { ...page, messageId: 'a' },
    { type: 'page', messageId: 'b' },
    { ...page, messageId: 'a' },
    '!',
    page,
    { ...page, integrations: { All: false } },
  ])
  expect(passedOn).toEqual([0, 4])
  state = 'off'
  await take([{ ...page, messageId: 'c' }])
  await take([page], { headers: {} })
  await take([page], { headers: { 'source-id': 'unknown' } })
  expect(passedOn).toEqual([0, 4])
})

test('a record of a retry topic is no repeat of the message that it carries', async () => {
  const headers = encodeRetryState({
    sourceId: 'shop',
    destinationId: 'crm',
    messageId: 'a',
    kind: 'page',
    nextRung: 0,
    attempts: 1,
    firstSeenMs: nowMs,
    expiresAtMs: nowMs + 60_000,
    failedHooks: [],
    notBeforeMs: new Map(),
    lastOutcome: 'status 500',
    origin: { topic: 'events', partition: 2, offset: 0 },
  })
  const message = { ...page, messageId: 'a' }
  await take([message])
  await take([message, message], { topic: 'retry.1m', headers })
  expect(written).toHaveLength(3)
  expect(asked).toEqual(['a'])
})

test('a filter that fails lets everything through, and is told of', async () => {
  filter = {
    isRepeat() {
      throw new Error('broken')
    },
  }
  await take([
    { ...page, messageId: 'a' },
    { ...page, messageId: 'a' },
  ])
  expect(written).toHaveLength(2)
  expect(failures.map(String)).toEqual(['Error: broken', 'Error: broken'])
})
