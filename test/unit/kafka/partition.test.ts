import { describe, expect, test } from 'vitest'
import { Partition } from '../../../src/kafka/partition.ts'

const nowMs = 1_700_000_000_000
const hour = 3_600_000

describe('a record is due', () => {
  test('so long after its append as its topic waits', () => {
    expect(new Partition('retry.1h', 0, hour).dueMsOf(5, nowMs - 1_000, nowMs)).toBe(nowMs - 1_000 + hour)
  })

  test('at once where nothing waits, whatever its time', () => {
    const partition = new Partition('events', 0, 0)
    for (const timestampMs of [-1, 0, nowMs, nowMs + hour, 9e15]) {
      expect(partition.dueMsOf(5, timestampMs, nowMs)).toBeLessThanOrEqual(nowMs)
    }
  })

  test('no later than that after it was first seen, when its append lies in the future', () => {
    const partition = new Partition('retry.1h', 0, hour)
    expect(partition.dueMsOf(5, 9e15, nowMs)).toBe(nowMs + hour)
    expect(partition.dueMsOf(5, 9e15, nowMs + hour)).toBe(nowMs + hour)
  })

  test('with all that was there then, so that they do not wait one after the other', () => {
    const partition = new Partition('retry.1h', 0, hour)
    partition.endOffset = 10
    expect(partition.dueMsOf(5, 9e15, nowMs)).toBe(nowMs + hour)
    expect(partition.dueMsOf(9, 9e15, nowMs + hour)).toBe(nowMs + hour)
    expect(partition.dueMsOf(10, 9e15, nowMs + hour)).toBe(nowMs + 2 * hour)
  })
})
