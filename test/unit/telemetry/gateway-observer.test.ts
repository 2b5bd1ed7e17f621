import { pino } from 'pino'
import { expect, test } from 'vitest'
import { calls } from '../../../src/gateway/calls/gateway-events.ts'
import { createGatewayMetrics } from '../../../src/telemetry/gateway-metrics.ts'
import { createGatewayObserver } from '../../../src/telemetry/gateway-observer.ts'

// rate() sees no increase in the first value of a series, so the objective of the gateway would miss the
// first outage of each process.
test('before a gateway fails a request, it shows that it has failed none', async () => {
  const metrics = createGatewayMetrics()
  const observer = createGatewayObserver({ metrics, log: pino({ level: 'silent' }), now: () => 0 })
  const before = await metrics.registry.metrics()
  for (const call of calls)
    for (const status of [500, 503])
      expect(before).toContain(`\nsluice_gateway_requests_total{call="${call}",status="${status}"} 0\n`)
  observer.answered('batch', 503, 1)
  expect(await metrics.registry.metrics()).toContain(
    '\nsluice_gateway_requests_total{call="batch",status="503"} 1\n',
  )
})
