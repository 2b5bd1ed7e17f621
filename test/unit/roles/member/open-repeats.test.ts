import { expect, test } from 'vitest'
import { openRepeats } from '../../../../src/roles/member/open-repeats.ts'

const setting = { windowMs: 3_600_000, messages: 1_000_000, rebuildTimeMs: 5_000 }

test('a worker does not start if its processes need more memory for repeats than the container has', () => {
  expect(() => openRepeats(setting, 4, 128_000_000)).toThrow(
    "repeats.messages (1000000) needs 36 MB in each of 4 processes, and the container has 128 MB in all. Set a smaller number, or raise the container's memory limit.",
  )
})

test('a worker starts if the container has the memory, or has no limit', () => {
  expect(openRepeats(setting, 4, 512_000_000)).toBeDefined()
  expect(openRepeats(setting, 4, 0)).toBeDefined()
  expect(openRepeats(setting, 4, 2 ** 64)).toBeDefined()
})

test('there is no memory of repeats when the filter is off', () => {
  expect(openRepeats({ ...setting, windowMs: 0 }, 4, 1)).toBeUndefined()
})
