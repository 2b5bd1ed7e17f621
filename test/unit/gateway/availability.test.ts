import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Availability } from '../../../src/gateway/availability.ts'

let obstacle: string | undefined
let looked: number
let changes: string[]
let availability: Availability

beforeEach(() => {
  vi.useFakeTimers()
  obstacle = undefined
  looked = 0
  changes = []
  availability = new Availability({
    check: async () => {
      looked++
      return obstacle
    },
    onChange: (reason) => changes.push(reason),
    now: () => performance.now(),
  })
})

afterEach(() => {
  availability.stop()
  vi.useRealTimers()
})

describe('availability', () => {
  test('is there at the beginning, and not looked for while records are taken', async () => {
    for (let second = 0; second < 20; second++) {
      availability.worked()
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(availability.isAvailable).toBe(true)
    expect([looked, changes]).toEqual([0, []])
  })

  test('is looked for where nothing shows it, and found missing', async () => {
    obstacle = 'no leader'
    await vi.advanceTimersByTimeAsync(6_000)
    expect(availability.reason).toBe('no leader')
    expect(changes).toEqual(['no leader'])
  })

  test('is gone when records are not taken, and looked for until it is back', async () => {
    obstacle = 'still down'
    availability.failed('down')
    expect(availability.isAvailable).toBe(false)
    await vi.advanceTimersByTimeAsync(3_000)
    expect(availability.reason).toBe('still down')
    obstacle = undefined
    await vi.advanceTimersByTimeAsync(600)
    expect(availability.isAvailable).toBe(true)
    expect(changes).toEqual(['down', ''])
  })

  test('is back at once when records are taken after all', () => {
    availability.failed('slow')
    availability.worked()
    expect(availability.isAvailable).toBe(true)
    expect(changes).toEqual(['slow', ''])
  })

  test('is not looked for any more after the stop', async () => {
    availability.failed('down')
    availability.stop()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(looked).toBe(0)
  })

  test('and what becomes of records then is no news', () => {
    availability.stop()
    availability.failed('the sender is stopped')
    expect(changes).toEqual([])
  })
})
