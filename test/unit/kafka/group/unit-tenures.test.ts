import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { UnitTenures } from '../../../../src/kafka/group/unit-tenures.ts'

/** Starts tenures that note each call. A call ends when the test says so. */
function watched({ handoverMs = 8_000, failures = 0 } = {}) {
  const seen: string[] = []
  const gates: PromiseWithResolvers<void>[] = []
  let left = failures
  const wait = (text: string) => {
    seen.push(text)
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    return gate.promise
  }
  const states = new UnitTenures({
    prepare: (unit) => {
      if (left-- > 0) return Promise.reject(new Error('not now'))
      return wait(`prepare ${unit}`)
    },
    released: (unit) => wait(`released ${unit}`),
    handoverMs,
    onPrepared: (unit) => seen.push(`prepared ${unit}`),
    onTrouble: (error, unit) => seen.push(`trouble ${unit}: ${String(error)}`),
  })
  const open = async (): Promise<void> => {
    await nextTurn()
    gates.shift()?.resolve()
    await nextTurn()
  }
  return { states, seen, open }
}

const all = () => true
const none = () => false

test('a unit is prepared once, however often that is asked', async () => {
  const { states, seen, open } = watched()
  states.prepare(3)
  states.prepare(3)
  await nextTurn()
  expect(states.preparing).toEqual([3])
  expect(states.isPrepared(3)).toBe(false)
  await open()
  states.prepare(3)
  await nextTurn()
  expect(seen).toEqual(['prepare 3', 'prepared 3'])
  expect(states.preparing).toEqual([])
  expect(states.isPrepared(3)).toBe(true)
})

test('a lost unit is released once, when it is at rest', async () => {
  const { states, seen, open } = watched()
  states.prepare(0)
  await open()
  states.lose(0)
  states.release(none)
  await nextTurn()
  expect(states.isPrepared(0)).toBe(false)
  expect(seen).toEqual(['prepare 0', 'prepared 0'])
  states.release(all)
  states.release(all)
  await open()
  await states.stop()
  expect(seen).toEqual(['prepare 0', 'prepared 0', 'released 0'])
})

test('a lost unit that does not come to rest is released when its time is over', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const { states, seen, open } = watched({ handoverMs: 5_000 })
    states.prepare(0)
    await open()
    states.lose(0)
    vi.advanceTimersByTime(4_999)
    await nextTurn()
    expect(seen).not.toContain('released 0')
    vi.advanceTimersByTime(1)
    await nextTurn()
    expect(seen).toContain('released 0')
  } finally {
    vi.useRealTimers()
  }
})

test('a preparation that fails while the member stops is no trouble, and is not tried again', async () => {
  const seen: string[] = []
  const preparing = Promise.withResolvers<void>()
  const states = new UnitTenures({
    prepare(unit) {
      seen.push(`prepare ${unit}`)
      return preparing.promise
    },
    released: (unit) => void seen.push(`released ${unit}`),
    handoverMs: 8_000,
    onPrepared: (unit) => seen.push(`prepared ${unit}`),
    onTrouble: (error) => seen.push(String(error)),
  })
  states.prepare(0)
  await nextTurn()
  states.quiesce()
  preparing.reject(new Error('the reader is stopped'))
  await nextTurn()
  await states.stop()
  expect(seen).toEqual(['prepare 0', 'released 0'])
})

test('a unit that is lost while it is prepared is released, and never said to be ready', async () => {
  const { states, seen, open } = watched()
  states.prepare(0)
  await nextTurn()
  states.lose(0)
  states.release(all)
  await open()
  await open()
  await states.stop()
  expect(seen).toEqual(['prepare 0', 'released 0'])
})

test('a unit that comes back is prepared again when its release and its preparation have ended', async () => {
  const { states, seen, open } = watched()
  states.prepare(0)
  await nextTurn()
  states.lose(0)
  states.prepare(0)
  await nextTurn()
  expect(seen).toEqual(['prepare 0'])
  states.release(all)
  await open()
  expect(seen).toEqual(['prepare 0', 'released 0'])
  await open()
  expect(seen).toEqual(['prepare 0', 'released 0', 'prepare 0'])
  await open()
  expect(states.isPrepared(0)).toBe(true)
})

test('a unit that comes and goes before its turn is neither prepared nor released for it', async () => {
  const { states, seen, open } = watched()
  states.prepare(0)
  await open()
  states.lose(0)
  states.prepare(0)
  states.lose(0)
  states.release(all)
  await open()
  await states.stop()
  expect(seen).toEqual(['prepare 0', 'prepared 0', 'released 0'])
})

test('a preparation that fails is tried again, a second later', async () => {
  const { states, seen, open } = watched({ failures: 1 })
  states.prepare(0)
  await nextTurn()
  expect(seen).toEqual(['trouble 0: Error: not now'])
  await vi.waitUntil(() => seen.includes('prepare 0'), { timeout: 60_000 })
  await open()
  expect(states.isPrepared(0)).toBe(true)
})

test('a stop releases all units and waits for it', async () => {
  const { states, seen, open } = watched()
  states.prepare(0)
  states.prepare(1)
  await open()
  await open()
  let isStopped = false
  const stopping = states.stop().then(() => {
    isStopped = true
  })
  await open()
  expect(isStopped).toBe(false)
  await open()
  await stopping
  expect(seen.slice(-2)).toEqual(['released 0', 'released 1'])
})
