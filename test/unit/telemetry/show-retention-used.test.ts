import { expect, test } from 'vitest'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'
import { showRetentionUsed } from '../../../src/telemetry/show-state.ts'

const nowMs = 100 * 3_600_000
const hoursAgo = (hours: number) => nowMs - hours * 3_600_000

function shortNameOf(topic: string): string {
  return topic.replace('eu.', '')
}

async function shown(partitions: { topic: string; oldestUnsettledMs: number }[]) {
  const metrics = createWorkerMetrics({ perDestination: false })
  const retentions = new Map([['eu.events', 10 * 3_600_000]])
  showRetentionUsed(metrics, partitions, { retentions, shortNameOf, nowMs })
  const { values } = await metrics.retentionUsed.get()
  return values.map(({ labels, value }) => [labels.topic, value])
}

test('of a topic’s partitions the oldest record counts, against how long the topic keeps it', async () => {
  const partitions = [1, 4, 2].map((hours) => ({ topic: 'eu.events', oldestUnsettledMs: hoursAgo(hours) }))
  expect(await shown(partitions)).toEqual([['events', 0.4]])
})

test('a topic with nothing left to settle is at 0', async () => {
  expect(await shown([{ topic: 'eu.events', oldestUnsettledMs: 0 }])).toEqual([['events', 0]])
})

test('a topic that drops nothing for its age isn’t shown', async () => {
  expect(await shown([{ topic: 'eu.memberships', oldestUnsettledMs: hoursAgo(99) }])).toEqual([])
})
