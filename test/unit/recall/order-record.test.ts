import { expect, test } from 'vitest'
import { decodeRecord } from '../../../src/notices/notice-record.ts'
import { decodeOrder, encodeDrop, encodeRecall } from '../../../src/recall/order-record.ts'

test('an order is read as it was written, and no other record of the topic is one', () => {
  const drop = { destinationId: 'crm', by: 'ann' }
  const all = { destinationId: 'crm', messageId: undefined, by: 'ann' }
  const one = { destinationId: 'crm', messageId: 'm "1"', by: 'ann' }
  for (const [order, { key, value }] of [
    [{ kind: 'recall', ...all }, encodeRecall(all)],
    [{ kind: 'recall', ...one }, encodeRecall(one)],
    [{ kind: 'drop', ...drop }, encodeDrop(drop)],
  ] as const) {
    expect(decodeOrder(key, value)).toEqual(order)
    // Those that read notices pass over it, also in earlier versions.
    expect(decodeRecord(key, value)).toBeUndefined()
  }
  for (const [key, value] of [
    ['["recall","crm"]', 'null'],
    ['["recall","crm"]', '{"by":1}'],
    ['["drop","crm"]', '{}'],
    ['["recall"]', '{"by":"ann"}'],
    ['["paused","crm"]', '{"by":"ann"}'],
    ['recall', '{'],
  ] as const)
    expect(decodeOrder(Buffer.from(key), Buffer.from(value))).toBeUndefined()
  expect(decodeOrder(Buffer.from('["recall","crm"]'), null)).toBeUndefined()
})
