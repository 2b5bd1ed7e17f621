import { expect, test } from 'vitest'
import { RuleTime } from '../../../src/pipeline/rule-time.ts'
import { destinationOf, type Destination, failed, stage, type Stage, taken, TestRecord } from './stage.ts'

function clocked(mostMs: number, mostOfAllMs = 10 * mostMs) {
  let nowMs = 0
  const over: string[] = []
  const onOver = (id: string, limit: string): void => void over.push(`${id}: ${limit}`)
  const time = new RuleTime({ mostMs, mostOfAllMs, onOver, monotonicMs: () => nowMs })
  const take = (id: string, ms: number) => time.measure(id, () => void (nowMs += ms))
  return { time, over, take, pass: (ms: number) => (nowMs += ms) }
}

test('a destination waits for what it owes, and no other does', () => {
  const { time, over, take, pass } = clocked(100)
  take('crm', 90)
  expect(time.waitMs('crm')).toBe(0)
  take('crm', 60)
  // It owes 150 ms less what 60 ms of the clock pay.
  expect(time.waitMs('crm')).toBeGreaterThan(400)
  expect(time.waitMs('crm')).toBeLessThan(500)
  expect(time.waitMs('erp')).toBe(0)
  take('crm', 10)
  expect(over).toEqual(['crm: own'])
  pass(1_000)
  expect(time.waitMs('crm')).toBe(0)
  take('crm', 200)
  expect(over).toEqual(['crm: own', 'crm: own'])
  expect(time.totalMs).toBe(360)
})

test('no pause is longer than a second, and what is paid is forgotten', () => {
  const { time, take, pass } = clocked(1)
  take('crm', 5_000)
  expect(time.waitMs('crm')).toBe(1_000)
  pass(10_000_000)
  expect(time.waitMs('crm')).toBe(0)
})

test('many destinations of one customer together take no more than is allowed to all, and who takes little never waits', () => {
  const { time, take, pass } = clocked(100, 500)
  const heavy = Array.from({ length: 50 }, (_, at) => `heavy-${at}`)
  const takenMs = { heavy: 0, light: 0 }
  let waitsOfLight = 0
  const second = (): void => {
    for (let ms = 0; ms < 1_000; ms += 10) {
      for (const id of heavy) {
        if (time.waitMs(id) > 0) continue
        take(id, 2)
        takenMs.heavy += 2
      }
      if (time.waitMs('light') > 0) waitsOfLight++
      else {
        take('light', 0.05)
        takenMs.light += 0.05
      }
      pass(10)
    }
  }
  // The share is found within the first seconds.
  for (let at = 0; at < 3; at++) second()
  takenMs.heavy = 0
  const startedMs = pass(0)
  for (let at = 0; at < 20; at++) second()
  const seconds = (pass(0) - startedMs) / 1_000
  expect(takenMs.heavy / seconds).toBeGreaterThan(300)
  expect(takenMs.heavy / seconds).toBeLessThan(600)
  expect(waitsOfLight).toBe(0)
})

test('whoever waits because all together take too much is told so, and not that its own limit is used up', () => {
  const { time, over, take, pass } = clocked(100, 200)
  for (let at = 0; at < 300; at++) {
    for (const id of ['a', 'b', 'c', 'd']) if (time.waitMs(id) === 0) take(id, 6)
    pass(10)
  }
  const told = (limit: string): number => over.filter((line) => line.endsWith(`: ${limit}`)).length
  const before = { own: told('own'), shared: told('shared') }
  for (let at = 0; at < 300; at++) {
    for (const id of ['a', 'b', 'c', 'd']) if (time.waitMs(id) === 0) take(id, 6)
    pass(10)
  }
  expect(told('own')).toBe(before.own)
  expect(told('shared')).toBeGreaterThan(before.shared)
})

test('a destination is told that waits only because its share has become smaller', () => {
  const { time, over, take, pass } = clocked(100, 200)
  for (let at = 0; at < 8; at++) take(`heavy-${at}`, 110)
  take('small', 90)
  expect(time.waitMs('small')).toBe(0)
  pass(40)
  expect(time.waitMs('small')).toBeGreaterThan(0)
  expect(over).toContain('small: shared')
})

test('what others take is given back once they take no more', () => {
  const { time, take, pass } = clocked(100, 200)
  for (let at = 0; at < 300; at++) {
    for (const id of ['a', 'b', 'c', 'd']) if (time.waitMs(id) === 0) take(id, 10)
    pass(10)
  }
  pass(5_000)
  let takenMs = 0
  for (let ms = 0; ms < 10_000; ms += 10) {
    if (time.waitMs('a') === 0) {
      take('a', 5)
      takenMs += 5
    }
    pass(10)
  }
  // A clock that also counts what is taken passes 10 to 15 ms a step.
  expect(takenMs).toBeGreaterThan(900)
})

const sources = { shop: {} } as const

function accept(all: Stage, messageId: string, total: number): TestRecord {
  const record = new TestRecord('events', 0)
  const message = { type: 'track', event: 'E', userId: 'u', messageId, properties: { total } }
  const content = { key: Buffer.from('u'), value: Buffer.from(JSON.stringify(message)) }
  all.pipeline.accept(record, { ...content, headers: { 'source-id': 'shop' } })
  return record
}

const filter = { types: undefined, events: undefined, condition: 'properties.total > 100' }
const crm: Destination = destinationOf('crm', { sources: ['shop'], filter })
const erp = destinationOf('erp', { sources: ['shop'] })

/** A pipeline in which any condition takes longer than it may, and pays for it within a second. */
function slow(destinations: readonly Destination[]): Stage {
  return stage({ sources, destinations, maxRuleMs: 0.000_001 })
}

test('messages of a destination that waits are judged later, and none is sent or lost before', async () => {
  const all = slow([crm, erp])
  accept(all, 'first', 200)
  const others = [accept(all, 'poor', 2), accept(all, 'rich', 300)]
  await all.settle()
  // The first was judged at once, and is the only one that came. Its destination owes its time now.
  expect(all.posted.filter(({ to }) => to === 'crm')).toHaveLength(1)
  expect(all.posted.filter(({ to }) => to === 'erp')).toHaveLength(3)
  expect(all.told).toEqual([])
  while (all.posted.length > 0) await all.answer(taken)
  expect(others.map(({ settled }) => settled)).toEqual([0, 0])
  // A process that stops hands them on, and the next one asks their conditions.
  await all.pipeline.drain()
  const waiting = all.written
  expect(waiting.map(({ headers }) => [headers['message-id'], headers['unjudged']])).toEqual([
    ['poor', '1'],
    ['rich', '1'],
  ])
  const next = stage({ sources, destinations: [crm] })
  for (const record of waiting) next.retry(record)
  await next.settle()
  expect(next.bodies()).toEqual([expect.stringContaining('"rich"')])
  expect(next.told).toEqual(['not routed: filtered_by_destination'])
  // What was judged and failed is not judged again.
  await next.answer(failed)
  expect(next.written[0]?.headers).not.toHaveProperty('unjudged')
})

test('a destination without conditions and mappings never waits', async () => {
  const all = slow([erp])
  for (let nth = 0; nth < 5; nth++) accept(all, `m${nth}`, nth)
  await all.settle()
  expect(all.posted).toHaveLength(5)
})
