import { expect, test } from 'vitest'
import { Run } from '../../../src/recall/run.ts'

function newRun() {
  return new Run({
    order: { destinationId: 'crm', messageId: undefined },
    cause: 'asked',
    atMs: 0,
    onRoom: () => undefined,
  })
}

function record(offset: number) {
  return {
    topic: 'retry.1m',
    partition: 0,
    offset,
    timestampMs: 0,
    isLate: false,
    isAbandoned: false,
    settle: () => undefined,
    giveBack: () => undefined,
  }
}

/** Gives as many records as there is room for. */
function fill(run: Run) {
  const given = []
  while (run.hasRoom) given.push(run.give(record(run.given)))
  return given
}

test('a run gives more with each message that arrives', () => {
  const run = newRun()
  const sizes: number[] = []
  for (let round = 0; round < 5; round++) {
    const given = fill(run)
    sizes.push(given.length)
    for (const one of given) {
      one.delivered()
      one.settle()
    }
  }
  expect(sizes).toEqual([4, 8, 16, 32, 64])
  expect(run.isIdle).toBe(true)
})

test('a run is over after a few failures in a row, but not because one of many messages fails', () => {
  const dead = newRun()
  for (const one of fill(dead)) {
    one.parked('failed')
    one.settle()
  }
  expect([dead.hasFailed, dead.hasRoom, dead.given]).toEqual([true, false, 4])

  const mixed = newRun()
  for (let round = 0; round < 10; round++) {
    for (const [index, one] of fill(mixed).entries()) {
      if (index % 4 === 3) one.parked('failed')
      else one.delivered()
      one.settle()
    }
  }
  expect(mixed.hasFailed).toBe(false)
})

test('a message that only joins its queue, because its lane is full, is no failure', () => {
  const run = newRun()
  for (const one of fill(run)) {
    one.parked('overflow')
    one.settle()
  }
  expect([run.hasFailed, run.hasRoom]).toEqual([false, true])
})
