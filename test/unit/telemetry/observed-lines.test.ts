import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createAudienceObserver } from '../../../src/telemetry/audience-observer.ts'
import { createFirstSyncObserver } from '../../../src/telemetry/first-sync-observer.ts'
import { createGatewayMetrics } from '../../../src/telemetry/gateway-metrics.ts'
import { createGatewayObserver } from '../../../src/telemetry/gateway-observer.ts'
import { createNoticeObserver } from '../../../src/telemetry/notice-observer.ts'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'
import { createObserver } from '../../../src/telemetry/worker-observer.ts'
import { idleRecord } from '../../support/idle-delivery.ts'

/** Tests of the words of the log: docs/log-lines.md says what each line means, and people search for it. */

const metrics = createWorkerMetrics({ perDestination: true })

/** Returns a log, and the messages of the lines that were written to it. */
function openLog() {
  const lines: string[] = []
  const write = (text: string): void => {
    const { msg }: { msg: string } = JSON.parse(text)
    lines.push(msg)
  }
  const log = pino({ level: 'trace' }, { write })
  return { log, lines }
}

test('first syncs that fail are told', () => {
  const { log, lines } = openLog()
  createFirstSyncObserver({ metrics, log }).failed(new Error('no broker'))
  expect(lines).toEqual(['first syncs fail, trying again'])
})

test('a state on disk that is not trusted is told, and what was read instead', () => {
  const { log, lines } = openLog()
  const observer = createAudienceObserver({ metrics, log })
  observer.restored({ unit: 1, mistrust: 'it is broken', records: 7, tookMs: 12 })
  expect(lines).toContain('the state on disk was not trusted: the worker has read all of it again from Kafka')
})

test('notices that Kafka refuses, and notices that are made again, are told', () => {
  const { log, lines } = openLog()
  const observer = createNoticeObserver({ metrics, log })
  observer.dropped('failing', 'refused', 1)
  observer.dropped('failing', 'coalesced', 1)
  observer.recovered()
  expect(lines).toEqual([
    'Kafka refuses a notice as too large: raise max.message.bytes of the topic events',
    'notices are made again',
  ])
})

test('connections that a gateway closes at once are told once a minute, with their number', () => {
  const { log, lines } = openLog()
  let nowMs = 0
  const observer = createGatewayObserver({ metrics: createGatewayMetrics(), log, now: () => nowMs })
  observer.connectionRefused()
  observer.connectionRefused()
  nowMs = 60_000
  observer.connectionRefused()
  const line = 'connections of clients were closed at once: there are too many (gateway.maxConnections)'
  expect(lines).toEqual([line, line])
})

test('a source that the catalog lacks is told, and a repeat only for those who look closely', () => {
  const { log, lines } = openLog()
  const observer = createObserver({ metrics, log, logAttempts: true, timeoutMs: 5_000, retryLimitMs: 1 })
  observer.unknownSource('shopp', idleRecord)
  observer.repeated(idleRecord, 'shop', 'order-4711')
  observer.flush()
  expect(lines).toEqual(['the catalog has no such source', 'a repeat was dropped'])
})
