import { expect, test } from 'vitest'
import { HealthBoard } from '../../../src/health/health-board.ts'
import { decodeHealth, encodeHealth, type HealthRecord } from '../../../src/health/health-record.ts'
import { type DestinationFacts, Reporter } from '../../../src/health/reporter.ts'

/** What processes write about destinations, and what a reader makes of it. */

const none = { messages: 0, replayed: 0, limit: undefined }

class Log {
  readonly board = new HealthBoard()
  #offset = 0

  write(records: readonly HealthRecord[], atMs: number): void {
    for (const record of records) this.board.take({ offset: this.#offset++, ...encodeHealth(record) }, atMs)
  }
}

function factsOf(
  destinations: Record<string, Partial<DestinationFacts>>,
  process = { units: [0, 1], of: 2 },
  sinceMs: number | undefined = 7,
) {
  return {
    destinations: new Map(Object.entries(destinations).map(([id, facts]) => [id, { ...none, ...facts }])),
    oldestMs: () => sinceMs,
    process,
  }
}

function keysOf(records: readonly HealthRecord[]): readonly string[] {
  return records.map((record) => String(encodeHealth(record).key))
}

test('a record is read as it was written, whatever later versions add to it', () => {
  const record: HealthRecord = {
    kind: 'destination',
    destinationId: 'crm',
    writer: 'w1',
    word: { waiting: { messages: 3, replayed: 0 } },
  }
  const { key, value } = encodeHealth(record)
  expect(decodeHealth(key, value)).toEqual(record)
  const later = Buffer.from('{"waiting":{"messages":3,"replayed":0,"new":1},"breaker":{"state":"open"}}')
  expect(decodeHealth(key, later)).toMatchObject(record)
  expect(decodeHealth(key, null)).toEqual({ ...record, word: undefined })
  expect(decodeHealth(Buffer.from('["process"]'), value)).toBeUndefined()
  expect(decodeHealth(Buffer.from('x'), value)).toBeUndefined()
})

test('a destination is written when it changes, and deleted when there is nothing to tell any more', () => {
  const reporter = new Reporter('w1')
  const waiting = factsOf({ crm: { messages: 5 } })
  const process = '["process","w1"]'
  const crm = '["destination","crm","w1"]'
  expect(keysOf(reporter.report(waiting, 0))).toEqual([crm, process])
  expect(keysOf(reporter.report(waiting, 3_000))).toEqual([process])
  expect(keysOf(reporter.report(factsOf({ crm: { messages: 6 } }), 6_000))).toEqual([crm, process])
  // As many came as left.
  reporter.left('crm')
  expect(keysOf(reporter.report(factsOf({ crm: { messages: 6 } }), 9_000))).toEqual([crm, process])
  const gone = reporter.report(factsOf({}), 12_000)
  expect(keysOf(gone)).toEqual([crm, process])
  expect(gone[0]?.word).toBeUndefined()
  expect(keysOf(reporter.report(factsOf({}), 15_000))).toEqual([process])
})

test('ten thousand destinations of which nothing waits are not written', () => {
  const reporter = new Reporter('w1')
  for (let n = 0; n < 10_000; n++) reporter.left(`d${n}`)
  expect(reporter.report(factsOf({}), 0)).toHaveLength(1)
})

test('of many destinations that change all the time, each gets its turn', () => {
  const reporter = new Reporter('w1')
  const log = new Log()
  for (let round = 1; round <= 5; round++) {
    const many = Array.from({ length: 5_000 }, (_, n) => [`d${n}`, { messages: round }] as const)
    const records = reporter.report(factsOf(Object.fromEntries(many)), round * 3_000)
    expect(records.length).toBeLessThanOrEqual(1_001)
    log.write(records, round * 3_000)
  }
  const told = [...log.board.destinations()]
  expect(told).toHaveLength(5_000)
})

test('the words of several processes are added up, the oldest counts, and the rates say how long it takes', () => {
  const log = new Log()
  const [one, other] = [new Reporter('w1'), new Reporter('w2')]
  const limit = { inFlight: 4, perSecond: 10, isLowered: true }
  const ofOne = (messages: number) => factsOf({ crm: { messages, limit } }, { units: [0], of: 2 }, 500)
  const ofOther = (messages: number) => factsOf({ crm: { messages, limit } }, { units: [1], of: 2 }, 900)
  log.write(one.report(ofOne(40), 1_000), 1_000)
  log.write(other.report(ofOther(60), 1_000), 1_000)
  expect(log.board.of('crm', 1_000)).toMatchObject({
    messages: 100,
    oldestMs: 500,
    // Nothing has left yet, so the limits say how long it takes.
    drainMs: 5_000,
    inFlight: 8,
    perSecond: 20,
    isLowered: true,
  })
  for (let n = 0; n < 12; n++) one.left('crm')
  log.write(one.report(ofOne(28), 4_000), 4_000)
  log.write(other.report(ofOther(60), 4_000), 4_000)
  // Four a second leave, all from the first process.
  expect(log.board.of('crm', 4_000)).toMatchObject({ messages: 88, drainMs: 22_000 })
  expect(log.board.asOfMs(4_000)).toBe(4_000)
})

function batchingFacts(messages: number, perRequest: number) {
  const limit = { inFlight: 4, perSecond: 2, perRequest, isLowered: false }
  return factsOf({ crm: { messages, limit } })
}

test('of a destination with batches, it counts the messages of a request until a rate is known', () => {
  const log = new Log()
  const reporter = new Reporter('w1')
  log.write(reporter.report(batchingFacts(1_000, 100), 0), 0)
  expect(log.board.of('crm', 0)).toMatchObject({ drainMs: 5_000, perSecond: 2 })
  // Larger messages make smaller batches.
  log.write(reporter.report(batchingFacts(1_000, 25), 0), 0)
  expect(log.board.of('crm', 0).drainMs).toBe(20_000)
  for (let n = 0; n < 600; n++) reporter.left('crm')
  log.write(reporter.report(batchingFacts(400, 25), 3_000), 3_000)
  expect(log.board.of('crm', 3_000).drainMs).toBe(2_000)
})

test('between two batches, and between two messages of a low limit, the rate stays what it is', () => {
  for (const perRequest of [100, 1]) {
    const log = new Log()
    const reporter = new Reporter('w1')
    const limit = { inFlight: 4, perSecond: 1 / 30, perRequest, isLowered: false }
    const told: (number | undefined)[] = []
    for (let seconds = 0; seconds <= 120; seconds += 3) {
      // One request each half minute.
      if (seconds > 0 && seconds % 30 === 0) for (let n = 0; n < perRequest; n++) reporter.left('crm')
      const messages = 1_000 * perRequest
      log.write(reporter.report(factsOf({ crm: { messages, limit } }), seconds * 1_000), seconds * 1_000)
      if (seconds > 60) told.push(log.board.of('crm', seconds * 1_000).drainMs)
    }
    const known = told.map((ms = 0) => ms / 30_000_000)
    expect(Math.min(...known)).toBeGreaterThan(0.1)
    expect(Math.max(...known)).toBeLessThan(1.5)
  }
})

test('a rate falls while nothing leaves any more, and is not written at each report', () => {
  const log = new Log()
  const reporter = new Reporter('w1')
  let written = 0
  for (let seconds = 0; seconds <= 300; seconds += 3) {
    if (seconds > 0 && seconds <= 30) for (let n = 0; n < 30; n++) reporter.left('crm')
    const records = reporter.report(factsOf({ crm: { messages: 500 } }), seconds * 1_000)
    if (seconds > 30) written += records.length - 1
    log.write(records, seconds * 1_000)
    if (seconds === 30) expect(log.board.of('crm', 30_000).drainMs).toBe(50_000)
    if (seconds === 90) expect(log.board.of('crm', 90_000).drainMs).toBeGreaterThan(10_000_000)
  }
  expect(log.board.of('crm', 300_000).drainMs).toBeUndefined()
  expect(written).toBeLessThan(30)
})

test('while the owner of a unit tells nothing, nothing is known, and that is not 0', () => {
  const log = new Log()
  expect(log.board.of('crm', 0).messages).toBeUndefined()
  const reporter = new Reporter('w1')
  log.write(reporter.report(factsOf({ crm: { messages: 5 } }, { units: [0], of: 2 }), 0), 0)
  expect(log.board.of('crm', 0).messages).toBeUndefined()
  expect(log.board.asOfMs(0)).toBeUndefined()
  log.write(reporter.report(factsOf({ crm: { messages: 5 } }), 3_000), 3_000)
  expect(log.board.of('crm', 3_000).messages).toBe(5)
  // Nothing is told of the other one, because nothing waits.
  expect(log.board.of('erp', 3_000).messages).toBe(0)
})

test('the words of a dead process expire, and those of one that stops go at once', () => {
  const log = new Log()
  const [dead, next] = [new Reporter('w1'), new Reporter('w2')]
  log.write(dead.report(factsOf({ crm: { messages: 5 } }), 0), 0)
  expect(log.board.of('crm', 10_000).messages).toBe(5)
  expect(log.board.of('crm', 30_000).messages).toBeUndefined()
  log.write(next.report(factsOf({ crm: { messages: 4 } }), 30_000), 30_000)
  expect(log.board.of('crm', 30_000).messages).toBe(4)
  log.board.forgetDead(30_000)
  log.write(next.end(), 31_000)
  expect(log.board.of('crm', 31_000).messages).toBeUndefined()
  expect([...log.board.destinations()]).toEqual([])
})

test('a reader knows whether all owners have told something since an offset', () => {
  const log = new Log()
  const [one, other] = [new Reporter('w1'), new Reporter('w2')]
  log.write(one.report(factsOf({}, { units: [0], of: 2 }), 0), 0)
  log.write(other.report(factsOf({}, { units: [1], of: 2 }), 0), 0)
  const since = log.board.position
  expect(log.board.isCompleteSince(since, 0)).toBe(false)
  log.write(one.report(factsOf({}, { units: [0], of: 2 }), 3_000), 3_000)
  expect(log.board.isCompleteSince(since, 3_000)).toBe(false)
  log.write(other.report(factsOf({}, { units: [1], of: 2 }), 3_000), 3_000)
  expect(log.board.isCompleteSince(since, 3_000)).toBe(true)
})
