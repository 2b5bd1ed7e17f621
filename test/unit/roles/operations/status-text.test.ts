import { expect, test } from 'vitest'
import { parseCatalog } from '../../../../src/catalog/parse.ts'
import { HealthBoard } from '../../../../src/health/health-board.ts'
import { encodeHealth, type HealthRecord } from '../../../../src/health/health-record.ts'
import type { Gone } from '../../../../src/notices/gone-record.ts'
import { assess, worstFirst } from '../../../../src/roles/operations/destination-conditions.ts'
import { conditionLines, whyOf } from '../../../../src/roles/operations/condition-text.ts'
import type { Pauses } from '../../../../src/roles/operations/known-pauses.ts'
import { FollowedPicture, type Picture } from '../../../../src/roles/operations/picture.ts'
import { statusData, statusLines, statusOf } from '../../../../src/roles/operations/status-text.ts'
import { readConfig } from '../../../../src/config/read.ts'
import { until } from '../../../support/until.ts'

/** What is said of destinations, and in which order. */

const nowMs = 1_785_317_402_000
const minute = 60_000
const ids = ['fine', 'gone', 'halted', 'held', 'many', 'off', 'slow', 'some']

function catalogOf() {
  const destinations = ids.map((id) => {
    const state = id === 'held' ? 'paused' : id === 'off' ? 'off' : 'on'
    const urls = id === 'some' ? ['main', 'spare'] : ['main']
    const hooks = urls.map((hook) => ({ id: hook, url: `https://${hook}.${id}.example.com/secret` }))
    return { id, sources: ['shop'], state, hooks }
  })
  const text = JSON.stringify({ sources: [{ id: 'shop' }], destinations })
  const parsed = parseCatalog(text, { file: 'catalog.yaml', variables: {} })
  if (!parsed.ok) throw new Error('the catalog has faults')
  return parsed.catalog
}

const catalog = catalogOf()
const pause = { sinceMs: 0, atMs: nowMs - 3 * 60 * minute, urls: '', lastOutcome: 'timeout', readTo: 0 }
const pauses: Pauses = {
  areKnown: true,
  has: ({ id }) => id === 'halted' || id === 'gone',
  goneHooks: ({ id }) => (id === 'gone' ? ['main'] : []),
  pauseOf: (id) => (id === 'halted' ? pause : undefined),
}

function failing(destinationId: string, answers: Record<string, number>, forMs: number): HealthRecord {
  const hook = { hook: 'main', sinceMs: nowMs - forMs, isOpen: true, answers, failedMs: nowMs - 1_000 }
  return { kind: 'failing', destinationId, writer: 'w:1:a', word: { hooks: [hook], nextMs: nowMs + 40_000 } }
}

function waiting(destinationId: string, messages: number, forMs: number): HealthRecord {
  const word = { waiting: { messages, replayed: 0, oldestMs: nowMs - forMs, perSecond: 10 } }
  return { kind: 'destination', destinationId, writer: 'w:1:a', word }
}

function boardOf(process: object): HealthBoard {
  const board = new HealthBoard()
  const records: readonly HealthRecord[] = [
    failing('some', { 'status 503': 90, 'status 200': 10 }, 90 * minute),
    failing('many', { timeout: 5_000 }, 14 * minute),
    waiting('many', 1_240, 12 * minute),
    waiting('slow', 20, 2 * minute),
    waiting('held', 4, 60 * minute),
    {
      kind: 'process',
      writer: 'w:1:a',
      word: { units: [0, 1], of: 2, version: '1.0.0', lag: 7, ...process },
    },
  ]
  records.forEach((record, offset) => board.take({ offset, ...encodeHealth(record) }, nowMs))
  return board
}

function pictureOf(board: HealthBoard | undefined, known = pauses): Picture {
  return { asOfMs: nowMs, pauses: known, health: { board, nowMs } }
}

function statusWith(process: object) {
  const picture = pictureOf(boardOf(process))
  return statusOf(picture, assess(catalog, picture.pauses, picture.health))
}

test('the worst come first: by their condition, then by how many messages are concerned', () => {
  const all = assess(catalog, pauses, { board: boardOf({}), nowMs }).toSorted(worstFirst)
  expect(all.map(({ destination, condition }) => `${destination.id} ${condition}`)).toEqual([
    'many failing',
    'some failing',
    'gone gone',
    'halted auto_paused',
    'slow paced',
    'held paused',
    'fine healthy',
    'off off',
  ])
})

test.each([
  ['many', 'timeout from main.many.example.com for 14 min, 1,240 wait, oldest 12 min, next try in 40 s'],
  ['some', '503 from main.some.example.com for 90 min (90 of 100 requests), next try in 40 s'],
  ['gone', '410 (Gone) from main.gone.example.com'],
  ['halted', 'paused by Sluice 3 h ago, after timeout'],
  ['slow', 'gets more than it takes, 20 wait, oldest 2 min, sent in 2 s'],
  ['held', 'paused in the catalog, 4 wait, oldest 60 min'],
  ['fine', ''],
])('of %s, the reason is said in one line: %s', (id, why) => {
  const one = assess(catalog, pauses, { board: boardOf({}), nowMs }).find(
    ({ destination }) => destination.id === id,
  )
  expect(one && whyOf(one, nowMs)).toBe(why)
})

test('the status has the counts, the totals and the commands to run, and no path of a URL', () => {
  const status = statusWith({})
  expect(status.counts).toMatchObject({
    failing: 2,
    gone: 1,
    auto_paused: 1,
    paced: 1,
    paused: 1,
    healthy: 1,
    off: 1,
  })
  const text = statusLines(status).join('\n')
  expect(text).toContain(
    'destinations  8: 2 failing, 1 gone, 1 auto_paused, 1 paced, 1 paused, 1 healthy, 1 off',
  )
  expect(text).toContain('backlog       7 records not settled')
  expect(text).toContain('waiting       1,264 messages wait for their turn')
  expect(text).toMatch(
    /halted +auto_paused .* sluice destinations test halted && sluice destinations resume halted/,
  )
  expect(text).not.toContain('Not known')
  expect(text + JSON.stringify(statusData(status))).not.toContain('secret')
})

test('what is not known is said, and is never 0', () => {
  const partly = statusWith({ units: [0], lag: undefined, version: undefined, untold: 12 })
  expect(statusData(partly)).toMatchObject({
    lag: null,
    waiting: null,
    untold: 12,
    destinations: { unknown: 2 },
  })
  expect(partly.unknown).toEqual([
    'What fails and what waits in 1 of 2 units: no worker that owns them tells.',
    'Which URLs fail for 1 worker: an earlier version runs there, which does not tell it.',
    'Which 12 more destinations fail: there are too many to tell.',
  ])
  const nothing = pictureOf(undefined, { ...pauses, areKnown: false, has: () => false, goneHooks: () => [] })
  const status = statusOf(nothing, assess(catalog, nothing.pauses, nothing.health))
  expect(status.unknown).toHaveLength(2)
  expect(statusLines(status).join('\n')).toContain('No destination is known to need attention.')
})

test('of one destination, each URL is told, and what to do', () => {
  const known = { board: boardOf({}), nowMs }
  const some = assess(catalog, pauses, known).find(({ destination }) => destination.id === 'some')
  const text = some === undefined ? '' : conditionLines(some, known).join('\n')
  expect(text).toMatch(
    /URL main +https:\/\/main\.some\.example\.com +fails since 20\S+Z \(90 min\); last minutes: status 503 × 90, status 200 × 10; breaker open/,
  )
  expect(text).toMatch(/URL spare +https:\/\/spare\.some\.example\.com +no failures are told/)
  expect(text).toContain('sluice log search --destination some --failed --since 1h')
})

test('a picture that can not be read any more stays, with its time; the first one is waited for', async () => {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const kafka = { isAway: true, readings: 0 }
  const answered = async <T>(value: T): Promise<T> => {
    kafka.readings++
    if (kafka.isAway) throw new Error('Kafka is away')
    return value
  }
  const warnings: string[] = []
  const gone: ReadonlyMap<string, ReadonlyMap<string, Gone>> = new Map()
  const followed = new FollowedPicture({
    desk: {
      paused: () => answered({ ok: true, value: [] } as const),
      gone: () => answered({ ok: true, value: gone } as const),
      health: () => answered({ board: undefined, nowMs: Date.now() }),
    },
    config: read.config,
    log: { info: (_fields, text) => warnings.push(text), warn: (_fields, text) => warnings.push(text) },
  })
  await expect(followed.current()).rejects.toThrow('away')
  kafka.isAway = false
  const first = await followed.renew()
  kafka.isAway = true
  await expect(followed.renew()).rejects.toThrow('away')
  expect(await followed.current()).toBe(first)
  expect(followed.assessed(catalog, first)).toBe(followed.assessed(catalog, first))
  await until('it is told once', () => warnings.length === 1)
  kafka.isAway = false
  await until('it is read again', () => warnings.length === 2)
  await followed.stop()
  expect(warnings).toEqual([
    'what workers tell of destinations can not be read: answers have an older asOf',
    'what workers tell of destinations is read again',
  ])
})

test('while a picture is read, no destination is said to be as a worker told that counts as dead', async () => {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const board = boardOf({})
  const nothing = { ok: true, value: [] } as const
  const followed = new FollowedPicture({
    desk: {
      paused: async () => nothing,
      gone: async () => ({ ok: true, value: new Map() }),
      health: async () => ({ board, nowMs }),
    },
    config: read.config,
    log: { info: () => undefined, warn: () => undefined },
  })
  const picture = await followed.current()
  expect(statusOf(picture, followed.assessed(catalog, picture)).attention).not.toEqual([])
  board.forgetDead(nowMs + 60_000)
  const status = statusOf(picture, followed.assessed(catalog, picture))
  expect(status.attention.map(({ destination: { id } }) => id)).toEqual([])
  await followed.stop()
})
