import { expect, test } from 'vitest'
import { chooseEvent } from '../../../src/replay/event.ts'
import { chooseLetter } from '../../../src/replay/letter.ts'
import { choiceFor } from './replay-choice.ts'
import { destinationOf, type Destination, stage, type Stage, startMs, taken, TestRecord } from './stage.ts'

const sources = { shop: {}, space: { kind: 'audiences' } } as const

function crmWith(condition: string | undefined): Destination {
  const filter = { types: undefined, events: undefined, condition }
  return destinationOf('crm', { sources: ['shop', 'space'], ...(condition !== undefined && { filter }) })
}

function accept(all: Stage, properties: object): TestRecord {
  const record = new TestRecord('events', 0)
  const message = { type: 'track', event: 'E', userId: 'u', messageId: 'm1', properties }
  const content = { key: Buffer.from('u'), value: Buffer.from(JSON.stringify(message)) }
  all.pipeline.accept(record, { ...content, headers: { 'source-id': 'shop' } })
  return record
}

test.each([
  [{ total: 200 }, 'sent'],
  [{ total: 20 }, 'filtered_by_destination'],
  [{}, 'filtered_by_missing_field'],
  [{ total: '200' }, 'filtered_by_missing_field'],
])('a message with %j: %s', async (properties, what) => {
  const all = stage({ sources, destinations: [crmWith('properties.total > 100')] })
  const record = accept(all, properties)
  await all.settle()
  if (what === 'sent') {
    await all.answer(taken)
    expect(all.told).toEqual([expect.stringMatching(/^delivered crm/)])
  } else expect([all.posted, all.told]).toEqual([[], [`not routed: ${what}`]])
  expect(record.settled).toBe(1)
})

test('an Identify of an audience passes each condition', () => {
  const all = stage({ sources, destinations: [crmWith('type == "page"')] })
  all.identify('v1')
  expect(all.bodies()).toEqual(['v1'])
})

const failing = 'int(properties.size) > 1'

test('a message of which a condition says nothing is neither sent nor lost, and others get it', async () => {
  const erp = destinationOf('erp', { sources: ['shop'] })
  const all = stage({ sources, destinations: [crmWith(failing), erp] })
  const record = accept(all, { size: 'large' })
  await all.settle()
  expect(all.posted.map(({ to }) => to)).toEqual(['erp'])
  const [letter] = all.written
  expect(letter).toMatchObject({
    topic: 'dead-letters',
    headers: { reason: 'filter_failed', 'destination-id': 'crm', 'message-id': 'm1', attempts: '0' },
  })
  expect(letter?.headers['detail']).toContain('sluice filter test')
  expect(letter?.headers['detail']).not.toContain('large')
  expect(record.settled).toBe(0)
  await all.answer(taken)
  expect(record.settled).toBe(1)
})

test.each([
  ['properties.size == "large"', { kind: 'send' }],
  ['properties.size == "small"', { kind: 'left_out', why: 'filtered' }],
  ['properties.missing == 1', { kind: 'left_out', why: 'filtered' }],
  [failing, { kind: 'left_out', why: 'filter_failed' }],
  [undefined, { kind: 'send' }],
])('a replay of it asks the present condition %s', async (condition, expected) => {
  const all = stage({ sources, destinations: [crmWith(failing)] })
  accept(all, { size: 'large' })
  await all.settle()
  const [letter] = all.written
  if (letter === undefined) throw new Error('there is no dead letter')
  const crm = crmWith(condition)
  const chosen = chooseLetter(
    { ...letter, offset: 0, timestampMs: startMs },
    { selection: { from: 'dead-letters' }, ...choiceFor(crm) },
  )
  expect(chosen).toMatchObject(expected)
  if (chosen.kind !== 'send') return
  const after = stage({ sources, destinations: [crm] })
  after.retry(chosen.records[0])
  await after.settle()
  expect(after.bodies()).toEqual([expect.stringContaining('"messageId":"m1"')])
})

test('a replay of events leaves out what the condition excludes, or says nothing of', () => {
  const record = {
    partition: 0,
    offset: 0,
    timestampMs: startMs,
    key: null,
    value: Buffer.from('{"type":"track","event":"E","userId":"u","properties":{"size":"large"}}'),
    headers: { 'source-id': 'shop' },
  }
  const chosen = (condition: string) =>
    chooseEvent(record, {
      selection: { from: 'events', destinationId: 'crm' },
      ...choiceFor(crmWith(condition)),
    })
  expect(chosen('properties.size == "large"')).toMatchObject({ kind: 'send' })
  expect(chosen('properties.size == "small"')).toEqual({ kind: 'left_out', why: 'filtered' })
  expect(chosen(failing)).toEqual({ kind: 'left_out', why: 'filter_failed' })
})
