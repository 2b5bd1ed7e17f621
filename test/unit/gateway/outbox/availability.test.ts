import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Availability, type Obstacle, patienceMs } from '../../../../src/gateway/outbox/availability.ts'

const partitions = 3

let obstacles: readonly Obstacle[]
let looked: number
let changes: string[]
let availability: Availability

beforeEach(() => {
  vi.useFakeTimers()
  obstacles = []
  looked = 0
  changes = []
  availability = new Availability({
    topics: ['events', 'deletions'],
    partitions,
    check: async () => {
      looked++
      return obstacles
    },
    onChange: ({ topic, refused, reason }) => changes.push(`${topic} ${refused} ${reason}`),
    now: () => performance.now(),
  })
})

afterEach(() => {
  availability.stop()
  vi.useRealTimers()
})

function allOf(topic: string, reason: string): Obstacle {
  return { topic, partition: undefined, reason }
}

function taken(topic: string): boolean[] {
  return Array.from({ length: partitions }, (_, partition) => availability.takes(topic, partition))
}

function fail(topic: string, partition: number, reason: string): void {
  availability.failed(topic, partition, reason, performance.now())
}

describe('availability', () => {
  test('is there at the beginning, and not looked for while records are taken', async () => {
    for (let second = 0; second < 20; second++) {
      availability.worked('events', 0)
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(availability.isAvailable('events')).toBe(true)
    expect([looked, changes]).toEqual([0, []])
  })

  test('is looked for where nothing shows it, and found missing', async () => {
    obstacles = [allOf('events', 'no leader')]
    await vi.advanceTimersByTimeAsync(7_000)
    expect(availability.isAvailable('events')).toBe(false)
    expect(availability.reason('events')).toBe('no leader')
    expect(changes).toEqual(['events 3 no leader'])
  })

  test('is that of a partition: the others of its topic, and other topics, take records', async () => {
    obstacles = [{ topic: 'events', partition: 1, reason: 'events/1 has no leader' }]
    await vi.advanceTimersByTimeAsync(7_000)
    expect([taken('events'), taken('deletions')]).toEqual([
      [true, false, true],
      [true, true, true],
    ])
    expect([availability.isAvailable('events'), availability.refused('events')]).toEqual([true, 1])
    expect(changes).toEqual(['events 1 events/1 has no leader'])
  })

  test('is not gone while a partition may only be changing its leader', async () => {
    obstacles = [{ topic: 'events', partition: 1, reason: 'events/1 has no leader' }]
    fail('events', 1, 'not the leader')
    await vi.advanceTimersByTimeAsync(patienceMs - 1)
    expect(taken('events')).toEqual([true, true, true])
    await vi.advanceTimersByTimeAsync(1)
    expect(taken('events')).toEqual([true, false, true])
  })

  test('is gone when records are not taken, and looked for until it is back', async () => {
    obstacles = [allOf('events', 'still down')]
    for (const partition of [0, 1, 2]) fail('events', partition, 'down')
    await vi.advanceTimersByTimeAsync(3_000)
    expect(availability.isAvailable('events')).toBe(false)
    expect(availability.reason('events')).toBe('still down')
    obstacles = []
    await vi.advanceTimersByTimeAsync(600)
    expect(taken('events')).toEqual([true, true, true])
    expect(changes).toEqual(['events 3 still down', 'events 0 '])
  })

  test('of what fails though nothing seems to be in the way is tried again, and a failure then believed at once', async () => {
    fail('events', 0, 'refused')
    await vi.advanceTimersByTimeAsync(900)
    fail('events', 0, 'refused')
    await vi.advanceTimersByTimeAsync(700)
    expect(taken('events')).toEqual([false, true, true])
    await vi.advanceTimersByTimeAsync(500)
    expect(taken('events')).toEqual([true, true, true])
    fail('events', 0, 'refused')
    expect(taken('events')).toEqual([false, true, true])
  })

  test('is back at once when records are taken after all', async () => {
    fail('events', 0, 'slow')
    availability.worked('events', 0)
    await vi.advanceTimersByTimeAsync(4_000)
    expect(taken('events')).toEqual([true, true, true])
    expect(changes).toEqual([])
  })

  test('is not looked for any more after the stop', async () => {
    fail('events', 0, 'down')
    availability.stop()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(looked).toBe(0)
  })

  test('and what becomes of records then is no news', async () => {
    availability.stop()
    fail('events', 0, 'the sender is stopped')
    await vi.advanceTimersByTimeAsync(2_000)
    fail('events', 0, 'the sender is stopped')
    expect(changes).toEqual([])
  })
})
