import { expect, test } from 'vitest'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'
import { showOldestUnsettled } from '../../../src/telemetry/show-state.ts'

async function shown(...times: { topic: string; oldestUnsettledMs: number }[][]) {
  const metrics = createWorkerMetrics({ perDestination: false })
  for (const partitions of times)
    showOldestUnsettled(metrics, partitions, (topic) => topic.replace('eu.', ''))
  const { values } = await metrics.oldestUnsettled.get()
  return values.map(({ labels, value }) => [labels.topic, value])
}

const events = (oldestUnsettledMs: number) => [{ topic: 'eu.events', oldestUnsettledMs }]

test('of each topic the oldest of its partitions counts, and those with nothing left do not', async () => {
  const partitions = [9_000, 0, 4_500].map((oldestUnsettledMs) => ({ topic: 'eu.events', oldestUnsettledMs }))
  expect(await shown([...partitions, { topic: 'eu.retry.1h', oldestUnsettledMs: 1_000 }])).toEqual([
    ['events', 4.5],
    ['retry.1h', 1],
  ])
})

test('a topic with all settled has no series any more', async () => {
  expect(await shown(events(4_000), events(0))).toEqual([])
})
