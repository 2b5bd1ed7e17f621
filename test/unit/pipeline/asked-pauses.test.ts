import { expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { destinationOf, type Stage, stage, TestRecord } from './stage.ts'
import { takingQueue } from './taking-queue.ts'

/** Tests of a working URL that asks for a longer pause than messages may wait in their lane. */

const breaker = { failureShare: 1, minResults: 1_000, windowMs: 10_000, openMs: 60_000, maxOpenMs: 60_000 }
const asks = { kind: 'answer', status: 429, retryAfterMs: 30_000 } as const

function track({ pipeline }: Stage, ...ids: string[]): void {
  for (const [offset, messageId] of ids.entries()) {
    const value = Buffer.from(JSON.stringify({ type: 'track', event: 'e', userId: 'u', messageId }))
    const content = { key: Buffer.from('u'), value, headers: { 'source-id': 'shop' } }
    pipeline.accept(new TestRecord('events', offset), content)
  }
}

/** Sends four messages, of which the first is answered with the wish for a pause. */
async function askOnce(isOpen: boolean) {
  const queued: string[] = []
  const all = stage({
    sources: { shop: {} },
    destinations: [destinationOf('crm', { sources: ['shop'], maxInFlight: 1 })],
    queue: takingQueue((id) => queued.push(id), { isOpen, has: () => queued.length > 0 }),
    breaker,
    laneWaitMs: 50,
  })
  track(all, 'm1', 'm2', 'm3', 'm4')
  await all.answer(asks)
  await until('none is in memory', () => all.pipeline.held.records === 0)
  all.pipeline.stop()
  const written = all.written.map(({ topic, headers }) => `${topic} ${String(headers['message-id'])}`)
  return { queued, written }
}

test('only the message that was answered so waits for its next try, and the others wait for their turn', async () => {
  expect(await askOnce(true)).toEqual({ queued: ['m2', 'm3', 'm4'], written: ['retry.1m m1'] })
})

test('all wait on the retry topics, if no message joins a queue', async () => {
  const { queued, written } = await askOnce(false)
  expect(queued).toEqual([])
  expect(written.toSorted()).toEqual(['m1', 'm2', 'm3', 'm4'].map((id) => `retry.1m ${id}`))
})
