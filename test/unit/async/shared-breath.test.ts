import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { SharedBreath } from '../../../src/async/shared-breath.ts'

const pieceMs = 4

function work(ms: number): void {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs);
}

test('several works together do one piece in a turn of the event loop, and all of them come to their end', async () => {
  const breath = new SharedBreath(pieceMs)
  let inTurn = 0
  const ofTurns: number[] = []
  const many = async (): Promise<void> => {
    for (let step = 0; step < 20; step++) {
      const turn = breath.take()
      if (turn !== undefined) await turn
      work(1)
      inTurn++
    }
  }
  const look = (): void => {
    ofTurns.push(inTurn)
    inTurn = 0
    next = setImmediate(look)
  }
  let next = setImmediate(look)
  await Promise.all([many(), many(), many(), many()])
  clearImmediate(next)
  expect(ofTurns.reduce((sum, count) => sum + count, inTurn)).toBe(80)
  // The last step of a piece begins before the piece is over, and this test looks before one piece of a turn or
  // after it.
  expect(Math.max(...ofTurns)).toBeLessThanOrEqual(2 * (pieceMs + 1))
})

test('a short work waits for nothing, and the next one neither once a turn is over', async () => {
  const breath = new SharedBreath(pieceMs)
  expect(breath.take()).toBeUndefined()
  work(2 * pieceMs)
  expect(breath.take()).toBeInstanceOf(Promise)
  await nextTurn()
  await nextTurn()
  expect(breath.take()).toBeUndefined()
})

test('a turn has room for the single steps of many', async () => {
  const breath = new SharedBreath(pieceMs)
  expect(breath.take()).toBeUndefined()
  work(2 * pieceMs)
  let done = 0
  for (let one = 0; one < 100; one++) void breath.take()?.then(() => done++)
  await nextTurn()
  await nextTurn()
  expect(done).toBe(100)
})
