import { expect, onTestFinished, test } from 'vitest'
import { startCountingReceiver } from '../support/counting-receiver.ts'
import { until } from '../support/until.ts'
import { startSluice } from '../support/worker-process.ts'
import { newIds, setScene } from './scene.ts'

const destinations = 400
const maxOpenFiles = 380
/** So few at once that the files suffice for requests in flight, and for all else that the process opens. */
const maxInFlight = 64

test('a worker with more destinations than it may open files delivers all messages, and parks none', async () => {
  const receiver = await startCountingReceiver()
  onTestFinished(() => receiver.stop())
  const numbers = Array.from({ length: destinations }, (_, number) => number)
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: numbers.map((number) => ({
        id: `d${number}`,
        sources: ['shop'],
        hooks: [{ url: receiver.url(`/${number}`) }],
      })),
    },
    variables: {
      SLUICE_DELIVERY_MAX_IN_FLIGHT: String(maxInFlight),
      SLUICE_DELIVERY_POOL_IDLE: '10m',
      SLUICE_DELIVERY_LANE_WAIT: '10m',
    },
  })
  onTestFinished(() => scene.close())
  const worker = await startSluice(scene.variables, { maxOpenFiles })
  onTestFinished(() => worker.kill())

  const messages = 3
  await scene.send('shop', newIds(messages))
  const delivered = () => worker.metric('sluice_deliveries_total', { verdict: 'delivered' })
  await until('all is delivered', async () => (await delivered()) === messages * destinations)

  expect(await worker.metric('sluice_parked_total')).toBe(0)
  expect(await worker.metric('sluice_attempts_total', { outcome: 'connection' })).toBe(0)
  const limit = await worker.metric('sluice_idle_connections_limit')
  expect(limit).toBe((maxOpenFiles * 3) / 4)
  expect(await worker.metric('sluice_idle_connections')).toBeLessThanOrEqual(limit)
  expect(await worker.metric('sluice_idle_connections')).toBeGreaterThan(limit / 2)
  expect(await worker.metric('sluice_idle_connections_closed_total')).toBeGreaterThan(destinations / 2)
  expect(worker.log.map(({ msg }) => msg)).toContain(
    'fewer idle connections than delivery.maxIdleConnections: the system allows too few open files (ulimit -n)',
  )
})
