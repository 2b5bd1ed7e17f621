import { expect, test } from 'vitest'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'
import { showCatalog, showDestinations } from '../../../src/telemetry/show-state.ts'

const destinations = (...states: ('on' | 'paused' | 'auto_paused' | 'off')[]) =>
  new Map(states.map((state, place) => [String(place), { state }]))

test('only the version in force is shown, and its destinations by state, also those of which there is none', async () => {
  const metrics = createWorkerMetrics({ perDestination: false })
  showCatalog(metrics, { version: 'aaaaaaaaaaaa', destinations: destinations('on', 'off', 'on') })
  showCatalog(metrics, { version: 'bbbbbbbbbbbb', destinations: destinations('paused') })
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
  showCatalog(metrics, { version: 'aaaaaaaaaaaa', destinations: destinations('on', 'on') })
  showDestinations(metrics, { destinations: destinations('on', 'auto_paused') })
  const { values: states } = await metrics.destinations.get()
  expect(states.map(({ labels, value }) => [labels.state, value])).toContainEqual(['auto_paused', 1])
})
