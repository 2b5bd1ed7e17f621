import { expect, test } from 'vitest'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'
import { showOpenHooks } from '../../../src/telemetry/show-state.ts'

const hooks = [
  { destinationId: 'crm', hookId: 'eu', openForMs: 4_000 },
  { destinationId: 'crm', hookId: 'us', openForMs: 90_000 },
]

async function shown(perDestination: boolean, ...times: (typeof hooks)[]) {
  const metrics = createWorkerMetrics({ perDestination })
  for (const open of times) showOpenHooks(metrics, open)
  const { values: counts } = await metrics.openBreakers.get()
  const { values } = await metrics.breakerOpen.get()
  return { open: counts[0]?.value, longest: values.map(({ labels, value }) => ({ ...labels, value })) }
}

test('URLs whose breaker is open are counted, with how long the first of them has been', async () => {
  expect(await shown(false, hooks)).toEqual({ open: 2, longest: [{ value: 90 }] })
  expect(await shown(false, hooks, [])).toEqual({ open: 0, longest: [{ value: 0 }] })
})

test('with labels each is a series for as long as it is open', async () => {
  expect(await shown(true, hooks)).toEqual({
    open: 2,
    longest: [
      { destination: 'crm', hook: 'eu', value: 4 },
      { destination: 'crm', hook: 'us', value: 90 },
    ],
  })
  expect(await shown(true, hooks, [])).toEqual({ open: 0, longest: [] })
})
