import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { createSender, type Sender, type Target } from '../../../src/delivery/send/sender.ts'
import { type IdleClosingReceiver, startIdleClosingReceiver } from '../../support/idle-closing-receiver.ts'

/**
 * A test of a sender whose process could do nothing for a moment. The receiver runs in a separate thread, so
 * it continues.
 */

const connections = 10

test('requests that come before the answers of others are read go out by the connections of those', async () => {
  const receiver = await startIdleClosingReceiver(
    { idleMs: 60_000, ending: 'closes' },
    { maxRequests: 3 * connections },
  )
  onTestFinished(() => receiver.stop())
  const by = createSender({
    policy: createAddressPolicy(['127.0.0.1']),
    timeoutMs: 5_000,
    poolIdleMs: 10_000,
  })
  onTestFinished(() => by.close())
  const to: Target = { origin: receiver.origin, path: '/', headers: [] }
  const opened = countConnections()

  await Promise.all(numbers(1).map((id) => post(by, to, id)))
  expect(opened.count).toBe(connections)

  const answeredMeanwhile = numbers(connections + 1)
  const before = answeredMeanwhile.map((id) => post(by, to, id))
  // In the first turn, undici checks whether the idle connections still work.
  await turn()
  await turn()
  stallUntilAnswered(receiver, answeredMeanwhile)
  const after = numbers(2 * connections + 1).map((id) => post(by, to, id))
  await Promise.all([...before, ...after])
  expect(opened.count).toBe(connections)
})

test('an answer that came in time counts, although it is read only after the deadline', async () => {
  const receiver = await startIdleClosingReceiver({ idleMs: 60_000, ending: 'closes' }, { maxRequests: 2 })
  onTestFinished(() => receiver.stop())
  const timeoutMs = 400
  const policy = createAddressPolicy(['127.0.0.1'])
  const by = createSender({ policy, timeoutMs, poolIdleMs: 10_000 })
  onTestFinished(() => by.close())
  const to: Target = { origin: receiver.origin, path: '/', headers: [] }
  await post(by, to, 1)
  const outcomes: string[] = []
  const startedMs = performance.now()
  const { promise: released, resolve } = Promise.withResolvers<void>()
  const answered = ({ kind }: Outcome): void => void outcomes.push(kind)
  by.post(to, Buffer.from('2'), [], { answered, released: () => resolve() })
  await turn()
  await turn()
  stallUntilAnswered(receiver, [2])
  while (performance.now() - startedMs < 2 * timeoutMs);
  await released
  expect(outcomes).toEqual(['answer'])
})

function numbers(from: number): number[] {
  return Array.from({ length: connections }, (_, index) => from + index)
}

function countConnections(): { readonly count: number } {
  const opened = { count: 0 }
  const note = (): void => void opened.count++
  subscribe('undici:client:connected', note)
  onTestFinished(() => void unsubscribe('undici:client:connected', note))
  return opened
}

/** Blocks the event loop until the receiver has answered the requests. */
function stallUntilAnswered(receiver: IdleClosingReceiver, ids: readonly number[]): void {
  const deadlineMs = performance.now() + 5_000
  while (ids.some((id) => !receiver.hasAnswered(id))) {
    if (performance.now() > deadlineMs)
      throw new Error('the requests were not answered while nothing was read')
  }
  // The operating system needs a moment to deliver the answers.
  const untilMs = performance.now() + 100
  while (performance.now() < untilMs);
}

/** Posts `id` as the body, and waits until the slot is free. */
function post(by: Sender, to: Target, id: number): Promise<void> {
  return new Promise((resolve) => {
    by.post(to, Buffer.from(String(id)), [], { answered() {}, released: resolve })
  })
}
