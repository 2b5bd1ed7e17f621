import { expect, test } from 'vitest'
import { byDestination } from '../../../src/console/data/dead-groups.ts'

const group = (destination: string | null, reason: string, count: number) => ({
  destination,
  reason,
  count,
  firstAt: '2026-07-23T14:00:00.000Z',
  lastAt: '2026-07-23T14:31:00.000Z',
})

test('dead letters are put together by destination, those with most first', () => {
  const grouped = byDestination([
    group('crm', 'expired', 5),
    group('erp', 'expired', 4),
    group('erp', 'failed_for_good', 9),
    group(null, 'no_source', 1),
  ])
  expect(
    grouped.map(({ destination, count, reasons }) => [destination, count, reasons.map((one) => one.reason)]),
  ).toEqual([
    ['erp', 13, ['failed_for_good', 'expired']],
    ['crm', 5, ['expired']],
    [null, 1, ['no_source']],
  ])
})
