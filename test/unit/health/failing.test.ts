import { expect, test } from 'vitest'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { judge } from '../../../src/delivery/outcomes/verdict.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'
import { FailingReporter, mostTold } from '../../../src/health/failing-reporter.ts'
import { HealthBoard } from '../../../src/health/health-board.ts'
import { encodeHealth, type FailingWord, type HealthRecord } from '../../../src/health/health-record.ts'
import { HookAnswers } from '../../../src/health/hook-answers.ts'
import { Reporter } from '../../../src/health/reporter.ts'
import { WorstFailing } from '../../../src/health/worst-failing.ts'
import { deliveryOf } from '../../support/idle-delivery.ts'

/** Which hooks fail: what a process sees, what it writes, and what a reader makes of it. */

const minute = 60_000
const unavailable: Outcome = { kind: 'answer', status: 503 }
const well: Outcome = { kind: 'answer', status: 200 }
const throttled: Outcome = { kind: 'answer', status: 429 }

function catalogOf(url = 'https://crm.example.com/') {
  const text = `
sources: [{ id: shop }]
destinations: [{ id: crm, sources: [shop], hooks: [{ id: main, url: '${url}' }] }]`
  const parsed = parseCatalog(text, { file: 'catalog.yaml', variables: {} })
  if (!parsed.ok) throw new Error('the catalog has faults')
  return parsed.catalog
}

function startAnswers() {
  const clock = { nowMs: 1_000 * minute }
  const answers = new HookAnswers(() => clock.nowMs)
  let catalog = catalogOf()
  return {
    clock,
    edit: (url: string) => void (catalog = catalogOf(url)),
    attempt: (outcome: Outcome, times = 1) => {
      const delivery = deliveryOf('shop', 'crm')
      const definition = catalog.destinations.get('crm')
      if (definition !== undefined)
        delivery.endpoint = { definition, hooks: [], hasLogins: false, headersOf: () => [] }
      const result = { hookId: 'main', outcome, verdict: judge(outcome), mayHaveArrived: false }
      for (let n = 0; n < times; n++) answers.observer.attempted(delivery, result, 1)
    },
    askForToken: (problem: string | undefined, times = 1) => {
      const definition = catalog.destinations.get('crm')
      for (let n = 0; n < times; n++)
        answers.observer.askedForToken?.('crm', 'main', { problem, isKept: false }, definition)
    },
    waits: (ms: number) => answers.observer.parked(deliveryOf('shop', 'crm'), 'failed', ms),
    failing: (openForMs = 0) =>
      answers
        .failing(openForMs > 0 ? [{ destinationId: 'crm', hookId: 'main', openForMs }] : [], catalog)
        .get('crm'),
  }
}

test('a hook fails after three failures without a success in between, and works again after one', () => {
  const { clock, attempt, failing } = startAnswers()
  const sinceMs = clock.nowMs
  attempt(unavailable, 2)
  expect(failing()).toBeUndefined()
  clock.nowMs += minute
  attempt({ kind: 'timeout' })
  expect(failing()?.hooks).toEqual([
    {
      hook: 'main',
      sinceMs,
      isOpen: false,
      answers: { 'status 503': 2, timeout: 1 },
      failedMs: clock.nowMs,
    },
  ])
  attempt(well)
  expect(failing()).toBeUndefined()
  attempt(unavailable, 3)
  expect(failing()?.hooks).toMatchObject([{ sinceMs: clock.nowMs, succeededMs: clock.nowMs }])
})

test('a hook that refuses everything fails too, and one that asks for fewer requests or was not reached by our fault does not', () => {
  const refused = startAnswers()
  refused.attempt({ kind: 'answer', status: 401 }, 3)
  expect(refused.failing()?.hooks).toMatchObject([{ answers: { 'status 401': 3 } }])
  const other = startAnswers()
  other.attempt(throttled, 9)
  other.attempt({ kind: 'proxy', code: 'ECONNREFUSED', isDown: true }, 9)
  expect(other.failing()).toBeUndefined()
})

test('a hook without a token fails, with the reason, until one comes or a request fails in another way', () => {
  const { attempt, askForToken, failing } = startAnswers()
  const problem = `https://login.example.com: status 401 ${'x'.repeat(500)}`
  askForToken(problem, 3)
  expect(failing()?.hooks).toMatchObject([{ loginProblem: problem.slice(0, 200) }])
  askForToken(undefined)
  expect(failing()).toBeUndefined()
  askForToken(problem, 3)
  attempt(unavailable)
  expect(failing()?.hooks[0]).not.toHaveProperty('loginProblem')
})

test('a reason why a login fails is told when it comes and goes, and a reader knows it', () => {
  const reporter = new FailingReporter('w1')
  const board = new HealthBoard()
  let offset = 0
  const tell = (word: FailingWord, nowMs: number): void => {
    const process: HealthRecord = { kind: 'process', writer: 'w1', word: { units: [0], of: 1 } }
    for (const record of [process, ...reporter.report(new Map([['crm', word]]), nowMs).records])
      board.take({ offset: offset++, ...encodeHealth(record) }, nowMs)
  }
  const known = (nowMs: number) => board.failingOf('crm', nowMs)?.hooks.get('a1b2c3d4')?.loginProblem
  const [hook] = wordOf(3).hooks
  if (hook === undefined) throw new Error('the word has no hook')
  tell({ hooks: [hook] }, 0)
  expect(known(0)).toBeUndefined()
  tell({ hooks: [{ ...hook, loginProblem: 'status 401' }] }, 20_000)
  expect(known(20_000)).toBe('status 401')
  tell({ hooks: [hook] }, 40_000)
  expect(known(40_000)).toBeUndefined()
})

test('a hook with an open breaker fails, even if it accepts a request now and then, until it has failed none for 30 s', () => {
  const { clock, attempt, failing } = startAnswers()
  attempt(unavailable, 3)
  attempt(well)
  expect(failing(5 * minute)?.hooks).toMatchObject([{ isOpen: true, sinceMs: clock.nowMs - 5 * minute }])
  clock.nowMs += minute / 2
  expect(failing(5 * minute)).toBeUndefined()
  attempt(unavailable)
  expect(failing(5 * minute)).toBeDefined()
})

test('answers of more than ten minutes ago are not counted, and a hook that is not asked any more is forgotten', () => {
  const { clock, attempt, failing } = startAnswers()
  attempt(unavailable, 40)
  clock.nowMs += 6 * minute
  attempt({ kind: 'timeout' }, 2)
  expect(failing()?.hooks[0]?.answers).toEqual({ 'status 503': 40, timeout: 2 })
  clock.nowMs += 6 * minute
  expect(failing()?.hooks[0]?.answers).toEqual({ timeout: 2 })
  clock.nowMs += 54 * minute
  expect(failing()?.hooks[0]?.answers).toEqual({})
  clock.nowMs += 6 * minute
  expect(failing()).toBeUndefined()
})

test('an edit of the URL ends what is known of it', () => {
  const { attempt, edit, failing } = startAnswers()
  attempt(unavailable, 9)
  expect(failing()).toBeDefined()
  edit('https://crm.example.com/v2')
  expect(failing()).toBeUndefined()
})

test('the next try is the first one that is still to come, and not known if all are over', () => {
  const { clock, attempt, waits, failing } = startAnswers()
  waits(minute)
  attempt(unavailable, 3)
  waits(10 * minute)
  waits(minute)
  for (let n = 0; n < 100; n++) waits(60 * minute + n * 5_000)
  expect(failing()?.nextMs).toBe(clock.nowMs + minute)
  clock.nowMs += 2 * minute
  expect(failing()?.nextMs).toBe(clock.nowMs + 8 * minute)
  clock.nowMs += 64 * minute
  expect(failing()?.nextMs).toBeUndefined()
})

test('no outcome can make the word long', () => {
  const { attempt, failing } = startAnswers()
  for (let n = 0; n < 50; n++) attempt({ kind: 'connection', code: `${n}`.repeat(500) })
  const word = failing()
  expect(word === undefined ? 0 : JSON.stringify(word).length).toBeLessThan(1_000)
  expect(Object.values(word?.hooks[0]?.answers ?? {}).reduce((sum, many) => sum + many, 0)).toBe(50)
})

function wordOf(requests: number, sinceMs = 0, isOpen = true): FailingWord {
  const hook = {
    hook: 'a1b2c3d4',
    sinceMs,
    isOpen,
    answers: { 'status 503': requests },
    failedMs: 1_785_317_403_000,
  }
  return { hooks: [hook], nextMs: 1_785_317_443_000, limit: { inFlight: 64, isLowered: false } }
}

function bytesOf(records: readonly HealthRecord[]): number {
  return records.map(encodeHealth).reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0), 0)
}

function thousand(round: number): ReadonlyMap<string, FailingWord> {
  return new Map(
    Array.from({ length: 1_000 }, (_, n) => [`customer-${n}`, wordOf(n + round, 1_785_317_403_000)]),
  )
}

test('of 10,000 destinations of which 1,000 fail, a minute costs a tenth of a first word for each, and 0 once they work', () => {
  const reporter = new FailingReporter('sluice-worker-0:1:a1b2c3')
  const first = reporter.report(thousand(0), 0)
  expect(first).toMatchObject({ failing: 1_000, untold: 0 })
  const bytes = bytesOf(first.records) / 1_000
  expect(bytes).toBeLessThan(300)
  const inNextMinute = Array.from({ length: 20 }, (_, n) => reporter.report(thousand(n + 1), (n + 1) * 3_000))
  expect(inNextMinute.flatMap(({ records }) => records)).toHaveLength(100)
  const end = reporter.report(new Map(), 2 * minute)
  expect(end).toMatchObject({ failing: 0, untold: 0 })
  expect(end.records).toHaveLength(1_000)
  expect(reporter.report(new Map(), 2 * minute + 3_000).records).toEqual([])
})

test('of more destinations than can be told, those with the most requests are, and how many are not is said', () => {
  const reporter = new FailingReporter('w1')
  const many = new Map(Array.from({ length: mostTold + 50 }, (_, n) => [`d${n}`, wordOf(n + 1)]))
  const { records, ...counts } = reporter.report(many, 0)
  expect(counts).toEqual({ failing: mostTold + 50, untold: 50 })
  const told = records.map((record) => (record.kind === 'failing' ? record.destinationId : ''))
  expect(told).toHaveLength(mostTold)
  expect(told).not.toContain('d49')
  expect(told).toContain('d50')
  // One that fails a little more doesn't push out another one.
  expect(reporter.report(many.set('d49', wordOf(60)), 3_000).records).toEqual([])
  const pushed = reporter.report(many.set('d49', wordOf(5_000)), 6_000).records
  expect(pushed.map(({ word }) => word === undefined)).toEqual([true, false])
})

test('a breaker that opens is told at once, and one that opens and closes again and again is not', () => {
  const reporter = new FailingReporter('w1')
  const report = (isOpen: boolean, nowMs: number) =>
    reporter.report(new Map([['crm', wordOf(1, 0, isOpen)]]), nowMs).records
  expect(report(false, 0)).toHaveLength(1)
  expect(report(true, 15_000)).toHaveLength(1)
  expect(report(false, 18_000)).toEqual([])
  expect(report(true, 21_000)).toEqual([])
  expect(report(false, 30_000)).toHaveLength(1)
})

/** Writes records as a worker does, except those that Kafka doesn't accept. */
class Log {
  readonly board = new HealthBoard()
  #offset = 0

  write(records: readonly HealthRecord[], atMs: number): void {
    for (const record of records) this.board.take({ offset: this.#offset++, ...encodeHealth(record) }, atMs)
  }
}

const facts = (units: readonly number[]) => ({
  destinations: new Map(),
  oldestMs: () => undefined,
  process: { units: [...units], of: 2 },
})

test('what several processes see of a hook is one, and expires with them', () => {
  const log = new Log()
  const [one, other] = [new FailingReporter('w1'), new FailingReporter('w2')]
  log.write([...one.report(new Map([['crm', wordOf(10, 500)]]), 0).records], 0)
  log.write([...other.report(new Map([['crm', wordOf(5, 200, false)]]), 0).records], 0)
  log.write(new Reporter('w1').report(facts([0]), 0), 0)
  log.write(new Reporter('w2').report(facts([1]), 0), 0)
  const seen = log.board.failingOf('crm', 0)
  expect(seen?.hooks.get('a1b2c3d4')).toMatchObject({
    sinceMs: 200,
    isOpen: true,
    answers: [['status 503', 15]],
  })
  expect(log.board.of('crm', 0)).toMatchObject({ inFlight: 128, messages: 0 })
  expect(log.board.processes(0).map(({ writer }) => writer)).toEqual(['w1', 'w2'])
  log.write(new Reporter('w2').report(facts([0, 1]), 25_000), 25_000)
  expect(log.board.failingOf('crm', 25_000)?.hooks.get('a1b2c3d4')).toMatchObject({
    sinceMs: 200,
    isOpen: false,
  })
  log.board.forgetDead(60_000)
  expect([...log.board.failing()]).toEqual([])
})

test('what was taken back while Kafka accepted nothing is taken back again', () => {
  const failing = new FailingReporter('w1')
  failing.report(new Map([['crm', wordOf(1)]]), 0)
  const lost = failing.report(new Map(), 3_000).records
  expect(lost).toMatchObject([{ destinationId: 'crm', word: undefined }])
  failing.forget()
  expect(failing.report(new Map(), 6_000).records).toEqual(lost)
  expect(failing.report(new Map(), 9_000).records).toEqual([])

  const reporter = new Reporter('w1')
  const waiting = { messages: 5, replayed: 0, limit: undefined }
  reporter.report({ ...facts([0]), destinations: new Map([['crm', waiting]]) }, 0)
  reporter.report(facts([0]), 3_000)
  reporter.forget()
  const again = reporter.report(facts([0]), 6_000)
  expect(again).toMatchObject([
    { kind: 'destination', destinationId: 'crm', word: undefined },
    { kind: 'process' },
  ])
})

test('metrics name at most ten destinations: those with most failed requests, if they have failed for five minutes', () => {
  const worst = new WorstFailing()
  const nowMs = 100 * minute
  const factsOf = (requests: number, forMs: number) => ({
    ...wordOf(requests, nowMs - forMs),
    nextMs: undefined,
  })
  const many = new Map(Array.from({ length: 1_000 }, (_, n) => [`d${n}`, factsOf(n, 6 * minute)]))
  many.set('new', factsOf(1_000_000, minute))
  expect([...worst.choose(many, nowMs).keys()]).toEqual(Array.from({ length: 10 }, (_, n) => `d${999 - n}`))
  // The names stay, so that there are few series.
  many.set('d0', factsOf(1_000, 6 * minute))
  expect(worst.choose(many, nowMs).has('d0')).toBe(false)
  many.set('d0', factsOf(5_000, 7 * minute))
  expect(worst.choose(many, nowMs).get('d0')).toBe(7 * minute)
})
