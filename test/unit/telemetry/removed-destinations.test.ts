import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { Delivery } from '../../../src/pipeline/delivery.ts'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'
import { createObserver } from '../../../src/telemetry/worker-observer.ts'

const hourMs = 3_600_000

function to(destinationId: string): Delivery {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the observer reads no other fields
  return { destinationId, messageId: 'm', firstSeenMs: 0 } as Delivery
}

/** A worker that has delivered one message to `gone` and one to `kept`. */
function worker() {
  const metrics = createWorkerMetrics({ perDestination: true })
  const log = pino({ level: 'silent' })
  const observer = createObserver({ metrics, log, logAttempts: false, timeoutMs: 5_000, retryLimitMs: 1 })
  const deliver = (destinationId: string): void => {
    const outcome = { kind: 'answer', status: 200 } as const
    const result = { hookId: 'main', outcome, verdict: { kind: 'delivered' }, mayHaveArrived: true } as const
    observer.attempted(to(destinationId), result, 1)
    observer.omitted(to(destinationId), 'other', 'full')
    observer.delivered(to(destinationId))
  }
  deliver('gone')
  deliver('kept')
  return {
    deliver,
    look: (destinations: readonly string[], nowMs: number) =>
      metrics.removedDestinations.look(new Set(destinations), nowMs),
    /** Returns the series of a destination, without `HELP` and `TYPE`. */
    seriesOf: async (destination: string) => {
      const lines = (await metrics.registry.metrics()).split('\n')
      return lines.filter((line) => line.includes(`destination="${destination}"`))
    },
  }
}

test('the series of a removed destination end after a day, and those of others do not', async () => {
  const { look, seriesOf } = worker()
  const shown = await seriesOf('gone')
  expect(shown).toHaveLength(3)
  look(['gone', 'kept'], 0)
  for (let hour = 1; hour < 25; hour++) look(['kept'], hour * hourMs)
  expect(await seriesOf('gone')).toEqual(shown)
  look(['kept'], 25 * hourMs)
  expect(await seriesOf('gone')).toEqual([])
  expect(await seriesOf('kept')).toHaveLength(3)
})

test('a destination that comes back within the day keeps its series', async () => {
  const { look, seriesOf } = worker()
  for (const hour of [1, 12]) look(['kept'], hour * hourMs)
  for (const hour of [13, 40]) look(['kept', 'gone'], hour * hourMs)
  look(['kept'], 41 * hourMs)
  expect(await seriesOf('gone')).toHaveLength(3)
})

test('what is counted after the end is shown from 0 on', async () => {
  const { look, seriesOf, deliver } = worker()
  for (const hour of [1, 25]) look(['kept'], hour * hourMs)
  expect(await seriesOf('gone')).toEqual([])
  deliver('gone')
  expect(await seriesOf('gone')).toContain(
    'sluice_deliveries_total{verdict="delivered",destination="gone"} 1',
  )
})

test('processes that scrape together end a series together, though one saw the removal a moment later', async () => {
  const [one, other] = [worker(), worker()]
  one.look(['kept'], hourMs + 1_000)
  other.look(['kept'], hourMs + 2_500)
  for (let atMs = hourMs; atMs < 30 * hourMs; atMs += 15 * 60_000) {
    one.look(['kept'], atMs)
    other.look(['kept'], atMs + 5)
    expect(await one.seriesOf('gone')).toEqual(await other.seriesOf('gone'))
  }
})
