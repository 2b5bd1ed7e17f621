import { expect, test } from 'vitest'
import { sampleKinds, sampleOf } from '../../../src/commands/trigger-samples.ts'
import { enter } from '../../../src/message/enter.ts'

const limits = { maxBytes: 1024 * 1024, maxDepth: 100, maxKeys: 10_000 }
const nowMs = Date.parse('2026-07-29T09:00:00.000Z')

test.each(sampleKinds)('a sample of %s is a message that Sluice delivers', (kind) => {
  const sample = sampleOf(kind, nowMs)
  const origin = { topic: 'events', partition: 0, offset: 0, timestampMs: nowMs }
  const entered = enter(Buffer.from(JSON.stringify(sample)), origin, limits)
  expect(entered).toMatchObject({
    ok: true,
    message: { messageId: sample['messageId'], type: sample['type'] },
  })
})

test('two samples are two messages', () => {
  expect(sampleOf('track', nowMs)['messageId']).not.toBe(sampleOf('track', nowMs)['messageId'])
})

test('a user enters an audience with true, and leaves it with false', () => {
  const kinds = ['audience-enter', 'audience-exit'] as const
  expect(kinds.map((kind) => sampleOf(kind, nowMs)['traits'])).toEqual([
    { sample_audience: true },
    { sample_audience: false },
  ])
})
