import { randomInt } from 'node:crypto'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { produce } from '../../support/kafka.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { startSluice } from '../../support/worker-process.ts'
import { setScene } from '../scene.ts'

/** Two workers share the rate limit of a destination. */

let receiver: Receiver

beforeEach(async () => {
  receiver = await startReceiver({ '/crm': answer(200) })
})

afterEach(() => receiver.stop())

const perSecond = 40
const burst = 2
/** A time in which a worker with its own half of the rate sends clearly fewer than one with nearly all of it. */
const windowMs = 2_000

/** Returns the most requests that came within some time of this length. */
function mostWithin(ms: number): number {
  const times = receiver.requests.map(({ atMs }) => atMs)
  let [most, first] = [0, 0]
  for (const [index, atMs] of times.entries()) {
    while ((times[first] ?? 0) < atMs - ms) first++
    most = Math.max(most, index - first + 1)
  }
  return most
}

test('a worker with all messages of a destination gets its rate, and both together never exceed it', async () => {
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [
        {
          id: 'crm',
          sources: ['shop'],
          hooks: [{ url: `${receiver.origin}/crm` }],
          rateLimit: { perSecond, burst },
        },
      ],
    },
    variables: { SLUICE_TOPICS_PARTITIONS: '4' },
  })
  onTestFinished(() => scene.close())
  for (let worker = 0; worker < 2; worker++) {
    const started = await startSluice(scene.variables)
    onTestFinished(() => started.kill())
  }
  let sent = 0
  async function send(partition: number, count: number): Promise<void> {
    const messages = Array.from({ length: count }, () => ({
      key: `user-${partition}`,
      value: JSON.stringify({
        type: 'track',
        userId: `user-${partition}`,
        event: 'Ping',
        messageId: `ping-${sent++}`,
      }),
      headers: { 'source-id': 'shop' },
      partition,
    }))
    await produce(`${scene.prefix}events`, messages)
  }
  // Only the worker that owns this partition has something to send.
  await send(randomInt(4), 600)
  const half = (perSecond / 2) * (windowMs / 1_000)
  await until('one worker sends at more than its own rate', () => mostWithin(windowMs) > 1.5 * half)
  // The other worker has messages again.
  for (const partition of [0, 1, 2, 3]) await send(partition, 50)
  await until('all came', () => receiver.requests.length >= sent, { timeoutMs: 90_000 })
  expect(receiver.requests).toHaveLength(sent)
  // On a busy machine, requests of two seconds may arrive together.
  for (const seconds of [5, 10])
    expect(mostWithin(seconds * 1_000)).toBeLessThanOrEqual((seconds + 2) * perSecond + burst)
})
