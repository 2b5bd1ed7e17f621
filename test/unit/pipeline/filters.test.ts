import { expect, test } from 'vitest'
import { destinationOf, failed, stage, taken, TestRecord } from './stage.ts'

/** A destination of a shop and of a space, with a filter that lets only pages of the shop pass. */
const crm = destinationOf('crm', {
  sources: ['shop', 'space'],
  filter: { types: ['page'], events: undefined },
})
const sources = { shop: {}, space: { kind: 'audiences' } } as const
const destinations = [crm]

function message(type: string): Parameters<ReturnType<typeof stage>['pipeline']['accept']>[1] {
  const value = Buffer.from(JSON.stringify({ type, event: 'E', userId: 'u', messageId: type }))
  return { key: Buffer.from('u'), value, headers: { 'source-id': 'shop' } }
}

test('a message that a filter excludes is settled, and told with its reason', async () => {
  const all = stage({ sources, destinations })
  const record = new TestRecord('events', 0)
  all.pipeline.accept(record, message('track'))
  await all.settle()
  expect(all.posted).toEqual([])
  expect(record.settled).toBe(1)
  expect(all.told).toEqual(['not routed: filtered_by_destination'])
})

test('an Identify of an audience passes every filter, and leaves no mark', async () => {
  const all = stage({ sources, destinations })
  const record = all.identify('v1')
  expect(all.bodies()).toEqual(['v1'])
  await all.answer(taken)
  expect(record.settled).toBe(1)
  expect(all.told).toEqual([expect.stringMatching(/^delivered crm/)])
})

test('a delete of a deletion request passes every filter', async () => {
  const all = stage({ sources, destinations })
  const record = new TestRecord('deletions', 0)
  const deletes = [{ sourceId: 'shop', messageId: 'd1', body: Buffer.from('{"type":"delete"}') }]
  all.pipeline.acceptDelete(record, { userId: 'u', deletes })
  await all.settle()
  expect(all.bodies()).toEqual(['{"type":"delete"}'])
})

test('a delivery that waits for a retry is sent although a new filter excludes it', async () => {
  const open = stage({ sources, destinations: [{ ...crm, filter: undefined }] })
  open.pipeline.accept(new TestRecord('events', 0), message('track'))
  await open.settle()
  await open.answer(failed)
  const all = stage({ sources, destinations })
  all.retry(open.written[0])
  await all.settle()
  expect(all.bodies()).toEqual([expect.stringContaining('"messageId":"track"')])
})
