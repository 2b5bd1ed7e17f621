import { expect, test } from 'vitest'
import { decodeRecord } from '../../../src/notices/notice-record.ts'
import { decodeRecall, encodeRecall } from '../../../src/recall/order-record.ts'

test('an order is read as it was written, and no other record of the topic is one', () => {
  for (const order of [
    { destinationId: 'crm', messageId: undefined, by: 'ann' },
    { destinationId: 'crm', messageId: 'm "1"', by: 'ann' },
  ]) {
    const { key, value } = encodeRecall(order)
    expect(decodeRecall(key, value)).toEqual(order)
    // Those that read notices pass over it, also in earlier versions.
    expect(decodeRecord(key, value)).toBeUndefined()
  }
  for (const [key, value] of [
    ['["recall","crm"]', 'null'],
    ['["recall","crm"]', '{"by":1}'],
    ['["recall"]', '{"by":"ann"}'],
    ['["paused","crm"]', '{"by":"ann"}'],
    ['recall', '{'],
  ] as const)
    expect(decodeRecall(Buffer.from(key), Buffer.from(value))).toBeUndefined()
  expect(decodeRecall(Buffer.from('["recall","crm"]'), null)).toBeUndefined()
})
