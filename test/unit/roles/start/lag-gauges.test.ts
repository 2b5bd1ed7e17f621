import { expect, test } from 'vitest'
import { lagWaitMs } from '../../../../src/roles/start/lag-gauges.ts'

test('the lag of a group is read the less often the more partitions it reads, and not by all processes at once', () => {
  expect([lagWaitMs(0, 0.5), lagWaitMs(3_000, 0.5), lagWaitMs(12_000, 0.5)]).toEqual([15_000, 15_000, 60_000])
  expect([lagWaitMs(0, 0), lagWaitMs(0, 1)]).toEqual([13_500, 16_500])
})
