import { type Logger, pino } from 'pino'
import { expect, test } from 'vitest'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'
import { createObserver } from '../../../src/telemetry/worker-observer.ts'
import type { Delivery } from '../../../src/pipeline/delivery.ts'

function listen(): { log: Logger; lines: () => object[] } {
  const written: string[] = []
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => void written.push(line) })
  return { log, lines: () => written.map((line): object => JSON.parse(line)) }
}

test('a message that a URL never gets is counted by reason and URL, and logged with its id', async () => {
  const metrics = createWorkerMetrics({ perDestination: true })
  const { log, lines } = listen()
  const observer = createObserver({ metrics, log, logAttempts: false, timeoutMs: 5_000, retryLimitMs: 1 })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the observer reads no other fields
  const delivery = { destinationId: 'crm', messageId: 'm-1' } as Delivery
  observer.omitted(delivery, 'second', 'full')
  observer.flush()
  expect(lines()).toEqual([
    expect.objectContaining({
      destination: 'crm',
      hook: 'second',
      reason: 'full',
      messageId: 'm-1',
      msg: expect.stringContaining('never gets the message'),
    }),
  ])
  const shown = await metrics.registry.getSingleMetric('sluice_hook_requests_omitted_total')?.get()
  expect(shown?.values).toEqual([
    { value: 1, labels: { reason: 'full', destination: 'crm', hook: 'second' } },
  ])
})
