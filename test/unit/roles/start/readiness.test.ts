import { expect, test } from 'vitest'
import { showReady } from '../../../../src/roles/start/readiness.ts'
import { addUpMetrics, snapshotMetrics } from '../../../../src/telemetry/add-up.ts'
import { createGatewayMetrics } from '../../../../src/telemetry/gateway-metrics.ts'
import { createWorkerMetrics } from '../../../../src/telemetry/worker-metrics.ts'

/** Returns the metrics of a process of a worker. The process has these reasons not to be ready. */
function workerWith(...reasons: string[]) {
  const metrics = createWorkerMetrics({ perDestination: false })
  showReady(metrics, 'worker', reasons)
  return metrics
}

test('a process is ready while nothing is in its way', async () => {
  const metrics = createGatewayMetrics()
  showReady(metrics, 'gateway', ['Kafka does not accept messages: no leader'])
  expect((await metrics.ready.get()).values).toMatchObject([{ value: 0, labels: { role: 'gateway' } }])
  showReady(metrics, 'gateway', [])
  expect((await metrics.ready.get()).values).toMatchObject([{ value: 1, labels: { role: 'gateway' } }])
})

/** Returns the metrics page of a worker with two processes. One of them has these reasons not to be ready. */
async function pageOfTwo(...reasons: string[]): Promise<string> {
  const both = [workerWith(), workerWith(...reasons)]
  return addUpMetrics(await Promise.all(both.map(({ registry }) => snapshotMetrics(registry))))
}

test('a worker of several processes is ready when all of them are', async () => {
  expect(await pageOfTwo()).toContain('sluice_ready{role="worker"} 1\n')
  expect(await pageOfTwo('not joined to the consumer group')).toContain('sluice_ready{role="worker"} 0\n')
})
