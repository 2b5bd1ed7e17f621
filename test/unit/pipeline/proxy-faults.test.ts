import { roomyBulkhead } from '../../support/bulkhead.ts'
import { describe, expect, test } from 'vitest'
import type { DestinationDefinition } from '../../../src/delivery/endpoint.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { defaultLimits } from '../../../src/message/limits.ts'
import { createPipeline } from '../../../src/pipeline/pipeline.ts'
import type { Pipeline, OutboundRecord } from '../../../src/pipeline/pipeline-ports.ts'
import { until } from '../../support/until.ts'

/**
 * Tests of what a fault of our own proxy does to a delivery. Each test gives the outcomes of the requests.
 * Kafka takes all records.
 */

const nowMs = 1_700_000_000_000
const hour = 3_600_000
const down: Outcome = { kind: 'proxy', code: 'ECONNREFUSED', isDown: true }
const unclear: Outcome = { kind: 'proxy', code: 'CONNECT_503', isDown: false }
const failed: Outcome = { kind: 'answer', status: 500 }
const taken: Outcome = { kind: 'answer', status: 200 }

const destination: DestinationDefinition = {
  id: 'crm',
  state: 'on',
  maxInFlight: 100,
  strategy: 'all',
  filter: undefined,
  sharedSecret: undefined,
  nextSharedSecret: undefined,
  standardWebhooks: false,
  rateLimit: undefined,
  hooks: [{ id: 'a', origin: 'https://a.example', path: '/', headers: [] }],
}
const twoHooks: DestinationDefinition = {
  ...destination,
  hooks: [...destination.hooks, { id: 'b', origin: 'https://b.example', path: '/', headers: [] }],
}

type Scene = {
  pipeline: Pipeline
  written: OutboundRecord[]
  parked: string[]
  delivered: number[]
  attempted: Outcome[]
  requests: () => number
  settled: () => number
  accept: (count?: number) => void
}

/**
 * Starts a pipeline. `answer` returns the outcome of a request, by the origin of the hook and the number of
 * the request.
 */
function scene(
  answer: (origin: string, nth: number) => Outcome,
  {
    definition = destination,
    isAbandoned = () => false,
  }: { definition?: DestinationDefinition; isAbandoned?: () => boolean } = {},
): Scene {
  const written: OutboundRecord[] = []
  const parked: string[] = []
  const delivered: number[] = []
  const attempted: Outcome[] = []
  let requests = 0
  let settled = 0
  const pipeline = createPipeline({
    catalog: () => ({
      sources: new Map([['shop', { enabled: true }]]),
      destinations: new Map([['crm', definition]]),
      destinationsBySource: new Map([['shop', [definition]]]),
    }),
    sender: {
      post({ origin }, _body, _signature, exchange) {
        requests++
        const outcome = answer(origin, requests)
        queueMicrotask(() => {
          exchange.answered(outcome, false)
          exchange.released()
        })
      },
      async close() {},
    },
    outlet: {
      async produce(record) {
        written.push(record)
        return 'acknowledged'
      },
    },
    observer: {
      attempted: (_delivery, { outcome }) => attempted.push(outcome),
      firstTried() {},
      omitted() {},
      delivered: ({ attempts }) => delivered.push(attempts),
      parked: (_delivery, why) => parked.push(why),
      deadLettered() {},
      notRouted() {},
      dropped() {},
      unknownSource() {},
      repeated() {},
      failed() {},
    },
    ladder: { waitsMs: [60_000, 600_000], thenMs: 60_000, limitMs: 4 * hour },
    topics: { events: 'events', retryPrefix: 'retry.', replays: 'replays', deadLetters: 'dead-letters' },
    limits: defaultLimits,
    maxInFlight: 1_000,
    laneWaitMs: 60_000,
    lanePatienceMs: 100,
    bulkhead: roomyBulkhead,
    namesRequests: false,
    breaker: { failureShare: 0.5, minResults: 10, windowMs: 10_000, openMs: 50, maxOpenMs: 1_000 },
    buffer: { records: 10_000, bytes: 10_000_000 },
    onPressure() {},
    onCongested() {},
    now: () => nowMs,
  })
  let offset = 0
  return {
    pipeline,
    written,
    parked,
    delivered,
    attempted,
    requests: () => requests,
    settled: () => settled,
    accept(count = 1) {
      for (let i = 0; i < count; i++) {
        pipeline.accept(
          {
            topic: 'events',
            partition: 0,
            offset: offset++,
            timestampMs: nowMs,
            isLate: false,
            get isAbandoned() {
              return isAbandoned()
            },
            settle: () => settled++,
            giveBack() {},
          },
          {
            key: Buffer.from('u'),
            value: Buffer.from('{"type":"page","userId":"u"}'),
            headers: { 'source-id': 'shop' },
          },
        )
      }
    },
  }
}

describe('while the proxy is down', () => {
  test('a delivery waits in its lane, and its first attempt is the one that was made', async () => {
    const all = scene((_origin, nth) => (nth === 1 ? down : taken))
    all.accept()
    await until('it is delivered', () => all.settled() === 1)
    expect(all).toMatchObject({ delivered: [1], written: [], parked: [] })
    all.pipeline.stop()
  })

  test('nothing begins while it is told to stop, and all goes on after', async () => {
    let isDown = true
    const all = scene(() => {
      if (isDown) all.pipeline.setStalled(true)
      return isDown ? down : taken
    })
    all.accept(20)
    await until('what was begun has come back', () => all.pipeline.inFlight === 0)
    const { requests } = all
    const begun = requests()
    expect(begun).toBeLessThanOrEqual(20)
    isDown = false
    all.pipeline.setStalled(false)
    await until('all are delivered', () => all.settled() === 20)
    expect(new Set(all.delivered)).toEqual(new Set([1]))
    expect(requests()).toBe(begun + 20)
    expect(all.parked).toEqual([])
    all.pipeline.stop()
  })

  test('a delivery that comes back to a worker that stops moves on, uncounted and without an end', async () => {
    const all = scene(() => {
      void all.pipeline.drain()
      return down
    })
    all.accept()
    await until('it is settled', () => all.settled() === 1)
    expect(all.parked).toEqual(['shutdown'])
    expect(all.written).toMatchObject([
      {
        topic: 'retry.1m',
        headers: { attempts: '0', 'expires-at': '0', 'last-outcome': 'proxy ECONNREFUSED' },
      },
    ])
    all.pipeline.stop()
  })

  test('a delivery that comes back when its partition is gone is let go', async () => {
    let isAbandoned = false
    const all = scene(
      () => {
        isAbandoned = true
        return down
      },
      { isAbandoned: () => isAbandoned },
    )
    all.accept()
    await until('it has left', () => all.pipeline.held.records === 0)
    expect(all.parked).toEqual(['handover'])
    all.pipeline.stop()
  })
})

describe('when the proxy fails for one hook', () => {
  test('its delivery takes the next rung, no attempt is counted, and its four hours begin', async () => {
    const all = scene(() => unclear)
    all.accept()
    await until('it is settled', () => all.settled() === 1)
    expect(all.parked).toEqual(['proxy'])
    expect(all.written).toMatchObject([
      {
        topic: 'retry.1m',
        headers: {
          attempts: '0',
          rung: '1',
          'expires-at': String(nowMs + 4 * hour),
          'last-outcome': 'proxy CONNECT_503',
        },
      },
    ])
    all.pipeline.stop()
  })

  test.each([
    ['had none', 20],
    ['had failures that are not yet enough', 9],
  ])('its breaker, which %s, is not told', async (_name, faults) => {
    const before = faults === 9 ? 9 : 0
    const all = scene((_origin, nth) => (nth <= before ? failed : nth <= before + faults ? unclear : taken))
    all.accept(before + faults)
    await until('all are parked', () => all.settled() === before + faults)
    all.accept()
    await until('the next is delivered', () => all.settled() === before + faults + 1)
    expect(all.delivered).toEqual([1])
    all.pipeline.stop()
  })

  test('a probe of its open breaker is given back', async () => {
    const all = scene((_origin, nth) => (nth <= 10 ? failed : nth <= 13 ? unclear : taken))
    all.accept(10)
    await until('all are parked', () => all.settled() === 10)
    for (let probe = 1; probe <= 4; probe++) {
      all.accept()
      await until('a probe has gone through', () => all.requests() === 10 + probe)
    }
    await until('it is delivered', () => all.delivered.length > 0)
    expect(all.attempted.slice(10, 14)).toEqual([unclear, unclear, unclear, taken])
    all.pipeline.stop()
  })

  test('and another hook takes the message, it is delivered', async () => {
    const all = scene((origin) => (origin === 'https://a.example' ? taken : down), { definition: twoHooks })
    all.accept()
    await until('it is settled', () => all.settled() === 1)
    expect(all).toMatchObject({ delivered: [1], written: [] })
    all.pipeline.stop()
  })

  test('and another hook fails, that is an attempt, and both are tried again', async () => {
    const all = scene((origin) => (origin === 'https://a.example' ? failed : unclear), {
      definition: twoHooks,
    })
    all.accept()
    await until('it is settled', () => all.settled() === 1)
    expect(all.parked).toEqual(['failed'])
    expect(all.written).toMatchObject([{ topic: 'retry.1m', headers: { attempts: '1', rung: '1' } }])
    expect(all.written[0]?.headers).not.toHaveProperty('failed-hooks')
    all.pipeline.stop()
  })
})
