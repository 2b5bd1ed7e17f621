import { expect, test } from 'vitest'
import { destinationOf, failed, stage, taken, TestRecord } from './stage.ts'

/** A destination that Sluice has paused automatically. */
const crm = destinationOf('crm', { state: 'auto_paused', sources: ['shop', 'space'] })
const sources = { shop: {}, space: { kind: 'audiences' } } as const

function track(messageId: string) {
  const value = Buffer.from(JSON.stringify({ type: 'track', event: 'e', userId: 'u', messageId }))
  return { key: null, value, headers: { 'source-id': 'shop' } }
}

test('an event becomes a dead letter at once, which says what to do; others get it', async () => {
  const all = stage({
    whileAutoPaused: 'dead-letter',
    sources,
    destinations: [crm, destinationOf('ads', { sources: ['shop'] })],
  })
  const record = new TestRecord('events', 0)
  all.pipeline.accept(record, track('m-1'))
  await all.settle()
  expect(all.posted.map(({ to }) => to)).toEqual(['ads'])
  expect(all.written).toMatchObject([
    {
      topic: 'dead-letters',
      headers: { 'destination-id': 'crm', 'message-id': 'm-1', attempts: '0', reason: 'auto_paused' },
    },
  ])
  const { detail } = all.written[0]?.headers ?? {}
  expect(detail).toContain('sluice destinations resume crm')
  expect(detail).toContain('sluice replay dead-letters --destination crm --reason auto_paused')
  await all.answer(taken)
  expect(record.settled).toBe(1)
})

test('a value of an audience becomes one, and the destination needs a backfill', async () => {
  const all = stage({ whileAutoPaused: 'dead-letter', sources, destinations: [crm] })
  const record = all.identify('v1')
  await all.settle()
  expect(all.told).toEqual(['dead crm: auto_paused', 'behind crm space'])
  expect(record.settled).toBe(1)
})

test('a delete becomes one, and is not lost in silence', async () => {
  const all = stage({ whileAutoPaused: 'dead-letter', sources, destinations: [crm] })
  const deletes = [{ sourceId: 'shop', messageId: 'd-1', body: Buffer.from('{"type":"delete"}') }]
  all.pipeline.acceptDelete(new TestRecord('deletions', 0), { userId: 'u', deletes })
  await all.settle()
  expect(all.told).toEqual(['dead crm: auto_paused'])
  expect(all.written).toMatchObject([
    { topic: 'dead-letters', headers: { 'message-type': 'delete', 'destination-id': 'crm' } },
  ])
})

test('a message that waits for a retry becomes one when it is due', async () => {
  const before = stage({ sources, destinations: [{ ...crm, state: 'on' }] })
  before.pipeline.accept(new TestRecord('events', 0), track('m-1'))
  await before.answer(failed)
  const all = stage({ whileAutoPaused: 'dead-letter', sources, destinations: [crm] })
  const record = all.retry(before.written[0])
  await all.settle()
  expect(all.told).toEqual(['dead crm: auto_paused'])
  expect(record.settled).toBe(1)
})

test('one that waits in its lane becomes one when its turn comes, and what is in flight is delivered', async () => {
  let destination = destinationOf('crm', { maxInFlight: 1, sources: ['shop'] })
  let catalog = catalogOf()
  function catalogOf() {
    return {
      sources: new Map([['shop', { enabled: true }]]),
      destinations: new Map([['crm', destination]]),
      destinationsBySource: new Map([['shop', [destination]]]),
    }
  }
  const all = stage({ whileAutoPaused: 'dead-letter', catalog: () => catalog })
  for (const id of ['m-1', 'm-2']) all.pipeline.accept(new TestRecord('events', 0), track(id))
  expect(all.posted).toHaveLength(1)
  destination = { ...destination, state: 'auto_paused' }
  catalog = catalogOf()
  await all.answer(taken)
  expect(all.told.map((line) => line.replace(/ \{.*/, ''))).toEqual([
    'delivered crm',
    'dead crm: auto_paused',
  ])
  expect(all.written[0]?.headers['message-id']).toBe('m-2')
})
