import { once } from 'node:events'
import { connect } from 'node:net'
import { Worker } from 'node:worker_threads'
import { afterEach, expect, test } from 'vitest'
import { createDeadlines, type Deadline, type Deadlines } from '../../../../src/delivery/send/deadlines.ts'
import { collectGarbage } from '../../../support/collect-garbage.ts'
import { soonest } from '../../../support/soonest.ts'
import { until } from '../../../support/until.ts'

const timeoutMs = 60
const opened: Deadlines[] = []

afterEach(() => {
  for (const deadlines of opened.splice(0)) deadlines.stop()
})

function open(options: { timeoutMs: number; tickMs?: number }): Deadlines {
  const deadlines = createDeadlines(options)
  opened.push(deadlines)
  return deadlines
}

test('a deadline fires once, never early', async () => {
  const deadlines = open({ timeoutMs })
  const startedMs = performance.now()
  const firedMs: number[] = []
  deadlines.add({ expire: () => firedMs.push(performance.now()) })
  await until('it has fired', () => firedMs.length > 0)
  expect(firedMs[0]).toBeGreaterThanOrEqual(startedMs + timeoutMs)

  // A deadline that was added later has fired. A second call of the first one would have come before that.
  await fired(deadlines)
  expect(firedMs).toHaveLength(1)
})

test('it fires within a tick of its time, as far as the machine lets it', async () => {
  const deadlines = open({ timeoutMs, tickMs: 5 })
  const enoughMs = timeoutMs + 25
  expect(await soonest(enoughMs, () => fired(deadlines), { tries: 50 })).toBeLessThan(enoughMs)
})

test('deadlines fire in the order in which they were added', async () => {
  const deadlines = open({ timeoutMs })
  const order: number[] = []
  for (let i = 0; i < 3_000; i++) deadlines.add({ expire: () => order.push(i) })
  await until('all have fired', () => order.length === 3_000)
  expect(order).toEqual(Array.from({ length: 3_000 }, (_, i) => i))
})

test('one that was cancelled never fires, and holds none of the others back', async () => {
  const deadlines = open({ timeoutMs })
  const order: string[] = []
  const first = deadlines.add({ expire: () => order.push('first') })
  const second = deadlines.add({ expire: () => order.push('second') })
  deadlines.add({ expire: () => order.push('third') })
  first.cancel()
  second.cancel()
  second.cancel()
  await until('the third has fired', () => order.includes('third'))
  expect(order).toEqual(['third'])
})

test('thousands that were cancelled take none with them that is still to come', async () => {
  const deadlines = open({ timeoutMs, tickMs: 5 })
  for (let i = 0; i < 3_000; i++) deadlines.add({ expire() {} }).cancel()
  expect(await fired(deadlines)).toBe(true)
})

test('one that was cancelled is kept by nobody, however long one before it has still to go', async () => {
  const deadlines = open({ timeoutMs: 60_000 })
  deadlines.add({ expire() {} })
  const cancelled = addCancelled(deadlines)
  deadlines.add({ expire() {} })
  await until('it is collected', () => {
    collectGarbage()
    return cancelled.deref() === undefined
  })
  expect(cancelled.deref()).toBeUndefined()
})

test('one that has fired can be cancelled without harm', async () => {
  const deadlines = open({ timeoutMs })
  let count = 0
  const deadline = deadlines.add({ expire: () => count++ })
  await until('it has fired', () => count > 0)
  deadline.cancel()
  await fired(deadlines)
  expect(count).toBe(1)
})

test('one that is cancelled by another that fires with it stays silent', async () => {
  const deadlines = open({ timeoutMs })
  const order: string[] = []
  deadlines.add({
    expire() {
      order.push('canceller')
      later.cancel()
    },
  })
  const later = deadlines.add({ expire: () => order.push('cancelled') })
  await fired(deadlines)
  expect(order).toEqual(['canceller'])
})

test('one that is added by another that fires gets its whole time', async () => {
  const deadlines = open({ timeoutMs, tickMs: 5 })
  const times: number[] = []
  deadlines.add({
    expire() {
      times.push(performance.now())
      deadlines.add({ expire: () => times.push(performance.now()) })
    },
  })
  await until('both have fired', () => times.length === 2)
  const [first = 0, second = 0] = times
  expect(second - first).toBeGreaterThanOrEqual(timeoutMs)
})

test('it goes on after it was idle', async () => {
  const deadlines = open({ timeoutMs, tickMs: 5 })
  await fired(deadlines)
  expect(await fired(deadlines)).toBe(true)
})

test('nothing fires after stop', async () => {
  const stopped = open({ timeoutMs })
  let count = 0
  for (let i = 0; i < 10; i++) stopped.add({ expire: () => count++ })
  stopped.stop()
  await fired(open({ timeoutMs: 2 * timeoutMs }))
  expect(count).toBe(0)
})

test('an answer that came while the process was suspended comes before its deadline', async () => {
  const server = new Worker(answering, { eval: true })
  const [port]: unknown[] = await once(server, 'message')
  const socket = connect(Number(port), '127.0.0.1')
  await once(socket, 'connect')
  const ends: string[] = []
  const deadline = open({ timeoutMs, tickMs: 5 }).add({ expire: () => ends.push('expired') })
  socket.once('data', () => {
    deadline.cancel()
    ends.push('answered')
  })
  socket.write('question')
  await new Promise((resolve) => setImmediate(resolve))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 * timeoutMs)
  await until('it has ended', () => ends.length > 0)
  socket.destroy()
  await server.terminate()
  expect(ends).toEqual(['answered'])
})

/** A thread with a server that answers at once, while the thread of the test stands still. */
const answering = `
  const server = require('node:net').createServer((socket) => socket.once('data', () => socket.write('answer')))
  server.listen(0, '127.0.0.1', () =>
    require('node:worker_threads').parentPort.postMessage(server.address().port))
`

/** Adds a deadline and cancels it. Its variables are gone when this function returns. */
function addCancelled(deadlines: Deadlines): WeakRef<Deadline> {
  const deadline = deadlines.add({ expire() {} })
  deadline.cancel()
  return new WeakRef(deadline)
}

/** Resolves when a deadline that is added now has fired. */
function fired(deadlines: Deadlines): Promise<boolean> {
  return new Promise((resolve) => {
    deadlines.add({ expire: () => resolve(true) })
  })
}
