import { expect, test } from 'vitest'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'
import { showCatalog, showDestinations } from '../../../src/telemetry/show-state.ts'

const none = { on: 0, paused: 0, auto_paused: 0, off: 0 }

test('only the version in force is shown, and its destinations by state, also those of which there is none', async () => {
  const metrics = createWorkerMetrics({ perDestination: false })
  showCatalog(metrics, 'aaaaaaaaaaaa', { ...none, on: 2, off: 1 })
  showCatalog(metrics, 'bbbbbbbbbbbb', { ...none, paused: 1 })
  const { values: versions } = await metrics.catalogInfo.get()
  expect(versions.map(({ labels, value }) => [labels.version, value])).toEqual([['bbbbbbbbbbbb', 1]])
  const { values: states } = await metrics.destinations.get()
  expect(Object.fromEntries(states.map(({ labels, value }) => [labels.state, value]))).toEqual({
    on: 0,
    paused: 1,
    auto_paused: 0,
    off: 0,
  })
})

test('a pause shows in the states', async () => {
  const metrics = createWorkerMetrics({ perDestination: false })
  showCatalog(metrics, 'aaaaaaaaaaaa', { ...none, on: 2 })
  showDestinations(metrics, { ...none, on: 1, auto_paused: 1 })
  const { values: states } = await metrics.destinations.get()
  expect(states.map(({ labels, value }) => [labels.state, value])).toContainEqual(['auto_paused', 1])
})
