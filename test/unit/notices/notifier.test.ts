import { expect, onTestFinished, test } from 'vitest'
import type { NoticeMessage } from '../../../src/notices/notice.ts'
import { Notifier, type NotifierOptions, type PausesPort } from '../../../src/notices/notifier.ts'
import type { KeyedRecord } from '../../../src/message/records.ts'
import { Board } from '../../../src/notices/board.ts'
import { encodeReport, type Report } from '../../../src/notices/notice-record.ts'
import type { PausableDestination } from '../../../src/notices/pause-decider.ts'
import { encodePause } from '../../../src/notices/pause-record.ts'
import { Watch } from '../../../src/notices/watch.ts'
import { until } from '../../support/until.ts'

const clocks = { monotonicMs: Date.now, now: Date.now }

/** A topic in memory, and the messages that were written to `events`. */
class Log {
  readonly records: KeyedRecord[] = []
  readonly sent: NoticeMessage[] = []
  reads = 0

  write(record: Pick<KeyedRecord, 'key' | 'value'>): void {
    this.records.push({ ...record, offset: this.records.length, timestampMs: Date.now() })
  }

  async *read(from: number): AsyncGenerator<readonly KeyedRecord[]> {
    this.reads++
    yield this.records.slice(from)
  }
}

function start(log: Log, reporter: string, options: Partial<NotifierOptions> = {}): Notifier {
  const watch = new Watch({ sourceId: 'sluice', failingAfterMs: 1_000, ...clocks })
  const notifier = new Notifier({
    reporter,
    terms: {
      failingAfterMs: 1_000,
      windowMs: 60_000,
      least: { paced: 100, dead_letters: 10 },
      staleMs: 60_000,
      wellMs: 10,
      secretEndingMs: 1_000,
    },
    everyMs: 2,
    watch,
    read: (from) => log.read(from),
    write: async (record) => log.write(record),
    send: async (message) => log.sent.push(message) > 0,
    openHooks: () => [],
    isWanted: () => true,
    isOwner: () => true,
    situation: () => ({ isKnown: () => true, behind: [], secrets: [] }),
    aboutOf: (id) => ({ name: id.toUpperCase(), labels: { tenant: 'acme' } }),
    pauseTerms: { staleMs: 60_000, steadyMs: 10 },
    pauses: {
      isOn: () => false,
      situation: () => ({ isSound: true, destinationOf: () => undefined }),
    },
    observer: { sent() {}, paused() {}, dropped() {}, failed() {}, recovered() {} },
    now: Date.now,
    ...options,
  })
  onTestFinished(() => notifier.stop())
  return notifier
}

function failing(log: Log): void {
  const hook = {
    destinationId: 'crm',
    hookId: 'main',
    sinceMs: 5,
    lastFailedMs: Date.now(),
    lastOutcome: 'timeout',
  }
  log.write(encodeReport('somebody', { failing: [hook], answered: [], counts: [] }))
}

/** Waits until the log was read more than 20 times. By then all workers have read everything in it. */
async function settled(log: Log): Promise<void> {
  const { reads } = log
  await until('it was read again', () => log.reads > reads + 20)
}

test('of several workers the one that decides sends a notice, once', async () => {
  const log = new Log()
  start(log, 'w1').acquire()
  start(log, 'w2')
  start(log, 'w3')
  failing(log)
  await until('a notice is sent', () => log.sent.length > 0)
  await settled(log)
  expect(log.sent).toHaveLength(1)
  expect(JSON.parse(log.sent[0]?.text ?? '')).toMatchObject({
    type: 'track',
    event: 'Endpoint Failing',
    anonymousId: 'crm',
    properties: {
      destination: 'crm',
      destinationName: 'CRM',
      labels: { tenant: 'acme' },
      hook: 'main',
      lastOutcome: 'timeout',
      times: 1,
    },
  })
})

test('a notice that its worker could not send is sent by the next one, with the same messageId', async () => {
  const log = new Log()
  const tried: NoticeMessage[] = []
  const first = start(log, 'w1', {
    async send(message) {
      tried.push(message)
      throw new Error('Kafka is away')
    },
  })
  first.acquire()
  failing(log)
  await until('it was tried', () => tried.length > 0)
  await first.stop()
  start(log, 'w2').acquire()
  await until('the next one sends it', () => log.sent.length > 0)
  await settled(log)
  expect(log.sent).toEqual([tried[0]])
})

test('what a process wrote while this one was suspended is as old as it is, and not new', async () => {
  const log = new Log()
  let aheadMs = 0
  const now = (): number => Date.now() + aheadMs
  start(log, 'w1', { now }).acquire()
  await settled(log)
  failing(log)
  aheadMs = 30 * 60_000
  await settled(log)
  expect(log.sent).toEqual([])
})

test('a worker that has lost its unit, or that the group has not heard of, sends nothing', async () => {
  const log = new Log()
  const lost = start(log, 'w1')
  lost.acquire()
  lost.release()
  start(log, 'w2', { isOwner: () => false }).acquire()
  failing(log)
  await settled(log)
  expect(log.sent).toEqual([])
})

test('a catalog without the source of notices costs nothing: nothing is read or written', async () => {
  const log = new Log()
  let asked = 0
  start(log, 'w1', { isWanted: () => ++asked < 0 }).acquire()
  await until('it was asked often', () => asked > 20)
  expect(log).toMatchObject({ reads: 0, records: [], sent: [] })
})

test('a topic that can not be used is said once, and when it works again', async () => {
  const log = new Log()
  const said: string[] = []
  let tries = 0
  const notifier = start(log, 'w1', {
    read(from) {
      if (++tries < 20) throw new Error('it does not exist')
      return log.read(from)
    },
    observer: {
      sent() {},
      paused() {},
      dropped() {},
      failed: (_error, isNew) => isNew && said.push('failed'),
      recovered: () => said.push('works'),
    },
  })
  notifier.acquire()
  await until('it works again', () => said.includes('works'))
  expect(said).toEqual(['failed', 'works'])
})

/** The port of a notifier for which pauses are on for every destination. */
const pausing: PausesPort = {
  isOn: () => true,
  situation: () => ({ isSound: true, destinationOf: () => crm }),
}
const crm: PausableDestination = {
  state: 'on',
  hookIds: ['main'],
  contents: new Map(),
  urls: 'u',
  autoPauseMs: 50,
}

/** Returns the destinations that are paused by the records of a log. */
function pausedIn({ records }: Log): readonly string[] {
  const board = new Board()
  for (const record of records) board.take(record, 0)
  return [...board.pauses.paused.keys()]
}

test('where nobody wants notices, and pauses are on, a destination is paused once, and nothing is sent', async () => {
  const log = new Log()
  const told: string[] = []
  const decider = start(log, 'w1', {
    isWanted: () => false,
    pauses: pausing,
    observer: {
      sent() {},
      paused: ({ kind, destinationId }) => told.push(`${kind} ${destinationId}`),
      dropped() {},
      failed() {},
      recovered() {},
    },
  })
  decider.acquire()
  start(log, 'w2', { isWanted: () => false, pauses: pausing })
  await until('it is paused', () => {
    failing(log)
    return pausedIn(log).includes('crm')
  })
  await settled(log)
  expect(told).toEqual(['paused crm'])
  expect(log.sent).toEqual([])
})

test('a pause is told by the worker that decides, once', async () => {
  const log = new Log()
  start(log, 'w1', { pauses: pausing }).acquire()
  const eventsOf = () => log.sent.map(({ text }): string => JSON.parse(text).event)
  await until('it is told', () => {
    failing(log)
    return eventsOf().includes('Destination Paused')
  })
  await settled(log)
  expect(eventsOf()).toEqual(['Endpoint Failing', 'Destination Paused'])
})

test('a success of a URL whose failures are timed is followed, although nobody was told that it fails', async () => {
  const log = new Log()
  const followed: (readonly object[])[] = []
  const watch = new Watch({ sourceId: 'sluice', failingAfterMs: 1_000, ...clocks })
  const follow = watch.follow.bind(watch)
  watch.follow = (hooks) => {
    followed.push(hooks)
    follow(hooks)
  }
  const pauseTerms = { staleMs: 60_000, steadyMs: 60_000 }
  start(log, 'w1', { isWanted: () => false, watch, pauses: pausing, pauseTerms }).acquire()
  failing(log)
  await until('it is followed', () => followed.at(-1)?.length === 1)
  expect(followed.at(-1)).toEqual([{ destinationId: 'crm', hookId: 'main' }])
})

test('however many hooks fail, each is reported, and each success, and then that they fail no longer', async () => {
  const log = new Log()
  const watch = new Watch({ sourceId: 'sluice', failingAfterMs: 1_000, ...clocks })
  const hooks = Array.from({ length: 1_201 }, (_, n) => ({ destinationId: `crm-${n}`, hookId: 'main' }))
  const times = { sinceMs: 5, lastFailedMs: 6, lastOutcome: '' }
  const failed = hooks.map((hook) => ({ ...hook, ...times }))
  const counts = hooks.map(({ destinationId }) => ({
    destinationId,
    paced: {},
    dead_letters: { expired: 1 },
  }))
  const reports: Report[] = [
    { failing: failed, answered: [], counts },
    { failing: failed.slice(0, 700), answered: hooks.map((hook) => ({ ...hook, atMs: 7 })), counts: [] },
  ]
  watch.take = () => reports.shift() ?? { failing: [], answered: [], counts: [] }
  const seen: { failing: number; answered: number; counted: number }[] = []
  const board = new Board()
  start(log, 'w1', {
    watch,
    async write(record) {
      log.write(record)
      board.take({ ...record, offset: board.position }, Date.now())
      seen.push({
        failing: board.failing(0).size,
        answered: hooks.filter((hook) => board.answeredMs(hook) === 7).length,
        counted: board.tallies('dead_letters').size,
      })
    },
  })
  await settled(log)
  expect(seen).toEqual([
    { failing: 500, answered: 0, counted: 500 },
    { failing: 1_000, answered: 0, counted: 1_000 },
    { failing: 1_201, answered: 0, counted: 1_201 },
    { failing: 1_201, answered: 500, counted: 1_201 },
    { failing: 901, answered: 1_000, counted: 1_201 },
    { failing: 700, answered: 1_201, counted: 1_201 },
    { failing: 200, answered: 1_201, counted: 1_201 },
    { failing: 0, answered: 1_201, counted: 1_201 },
    { failing: 0, answered: 1_201, counted: 1_201 },
  ])
})

test.each<[string, Partial<PausableDestination> | undefined]>([
  ['sets autoPause: off for', { autoPauseMs: 0 }],
  ['removes', undefined],
])('an edit that %s the only destination with automatic pauses ends its pause', async (_what, edit) => {
  const log = new Log()
  const own: PausableDestination = { ...crm, urls: 'u1', autoPauseMs: 1_000 }
  let destination: PausableDestination | undefined = own
  log.write(
    encodePause({
      kind: 'paused',
      destinationId: 'crm',
      content: { sinceMs: 1, atMs: 2, urls: 'u1', lastOutcome: 'timeout', readTo: 0 },
    }),
  )
  start(log, 'w1', {
    isWanted: () => false,
    pauses: {
      isOn: () => (destination?.autoPauseMs ?? 0) > 0,
      situation: () => ({ isSound: true, destinationOf: () => destination }),
    },
  }).acquire()
  await until('it has read the pause', () => log.reads > 1)
  expect(pausedIn(log)).toEqual(['crm'])
  destination = edit && { ...own, ...edit }
  await until('the pause is over', () => pausedIn(log).length === 0)
  destination = own
  await settled(log)
  expect(pausedIn(log)).toEqual([])
})
