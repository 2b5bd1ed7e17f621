import { expect, test } from 'vitest'
import { addUpMetrics, snapshotMetrics } from '../../../src/telemetry/add-up.ts'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'

/**
 * Returns what `/metrics` shows for a worker with several processes. `happen` is called with the metrics and
 * the number of each process.
 */
async function pageOf(
  processes: number,
  happen: (metrics: ReturnType<typeof createWorkerMetrics>, number: number) => void,
): Promise<string> {
  const snapshots = Array.from({ length: processes }, (_, number) => {
    const metrics = createWorkerMetrics({ perDestination: false })
    happen(metrics, number)
    return snapshotMetrics(metrics.registry)
  })
  // Processes send their metrics as JSON.
  const sent: Awaited<(typeof snapshots)[number]>[] = JSON.parse(JSON.stringify(await Promise.all(snapshots)))
  return addUpMetrics(sent)
}

test('a rebalance counts once for a worker, however many of its processes have joined again', async () => {
  const page = await pageOf(4, ({ rebalances }, number) => rebalances.inc(number === 0 ? 2 : 3))
  expect(page).toContain('\nsluice_rebalances_total 3\n')
})

test('a worker of several processes says when it was started', async () => {
  const page = await pageOf(2, () => undefined)
  const started = Number(/^process_start_time_seconds (\S+)$/m.exec(page)?.[1])
  expect(Math.abs(started - (Date.now() / 1_000 - process.uptime()))).toBeLessThan(60)
})
