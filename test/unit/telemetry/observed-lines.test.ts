import { pino } from 'pino'
import { expect, test } from 'vitest'
import { parseCatalog } from '../../../src/catalog/parse.ts'
import { createAudienceObserver } from '../../../src/telemetry/audience-observer.ts'
import { createFirstSyncObserver } from '../../../src/telemetry/first-sync-observer.ts'
import { createGatewayMetrics } from '../../../src/telemetry/gateway-metrics.ts'
import { createGatewayObserver } from '../../../src/telemetry/gateway-observer.ts'
import { createNoticeObserver } from '../../../src/telemetry/notice-observer.ts'
import { loginObserver } from '../../../src/telemetry/login-lines.ts'
import { createReplayObserver } from '../../../src/telemetry/replay-observer.ts'
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

test('rules that take too long are told once in ten seconds for each destination', () => {
  const { log, lines } = openLog()
  const observer = createObserver({ metrics, log, logAttempts: true, timeoutMs: 5_000, retryLimitMs: 1 })
  for (const destination of ['crm', 'crm', 'erp']) observer.rulesTooLong?.(destination, 'own')
  const line =
    'the conditions and mappings of a destination take more time than delivery.maxRuleTime: its messages wait'
  expect(lines).toEqual([line, line])
  observer.flush()
  expect(lines).toEqual([line, line, line])
  observer.rulesTooLong?.('crm', 'shared')
  expect(lines[3]).toBe(
    'the conditions and mappings of all destinations want more than half of this process, and this one takes more than its share: its messages wait',
  )
})

test('a login that fails, goes on with its present token and works again is told', () => {
  const { log, lines } = openLog()
  const asked = loginObserver(metrics, log)
  const hooks = '[{ id: main, url: https://crm.example/ }]'
  const parsed = parseCatalog(
    `{ sources: [{ id: shop }], destinations: [{ id: crm, sources: [shop], hooks: ${hooks} }] }`,
    {
      file: 'catalog.yaml',
    },
  )
  const definition = parsed.ok ? parsed.catalog.destinations.get('crm') : undefined
  for (const isKept of [true, false, false])
    asked('crm', 'main', { problem: 'status 503', isKept }, definition)
  asked('crm', 'main', { problem: undefined, isKept: false }, definition)
  expect(lines).toEqual([
    'the token endpoint gives no new token: the present one is used until it ends',
    'the login failed: messages wait in their queue until the token endpoint gives a token',
    'the login works again: what waited is sent',
  ])
})

test('a replay that goes on where another worker left it, and that this worker gives up, is told', () => {
  const { log, lines } = openLog()
  const observer = createReplayObserver({ metrics, log })
  const done = { records: 7, bytes: 70, leftOut: {} }
  const replay = {
    order: {
      id: '20260723-151500-3f9a2c',
      selection: { from: 'dead-letters', destinationId: 'crm' },
      perSecond: 100,
      by: 'ann',
      atMs: 0,
      ranges: [],
    },
    wish: { state: 'run', by: 'ann', atMs: 0 },
    progress: { term: 1, note: 3, owner: 'another worker', offsets: [], done, atMs: 0, isOver: false },
  } as const
  observer.begun(replay)
  observer.ended(replay, 'left', done)
  expect(lines).toEqual([
    'a replay goes on',
    'this worker no longer runs the replay: it was stopped, or another worker continues it; see `sluice replay show`',
  ])
})
