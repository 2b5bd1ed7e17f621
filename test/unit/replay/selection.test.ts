import { expect, test } from 'vitest'
import { faultsOf } from '../../../src/replay/selection.ts'

test('a fault of a selection names its field as the admin API does', () => {
  const events = { from: 'events', reason: 'expired', fromMs: 2, toMs: 1 } as const
  expect(faultsOf(events).map(({ field }) => field)).toEqual(['destination', 'reason', 'to'])
})
