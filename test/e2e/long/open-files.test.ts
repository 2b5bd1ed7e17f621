import { execFileSync } from 'node:child_process'
import { expect, onTestFinished, test } from 'vitest'
import { startCountingReceiver } from '../../support/counting-receiver.ts'
import { startDnsServer, zone } from '../../support/dns-server.ts'
import { until } from '../../support/until.ts'
import { startSluice } from '../../support/worker-process.ts'
import { newIds, setScene } from '../scene.ts'

/** Starts a receiver, and a scene in which each message of `shop` goes to `destinations` destinations. */
async function setFanOut(destinations: number, variables: Record<string, string>, host = '127.0.0.1') {
  const receiver = await startCountingReceiver()
  onTestFinished(() => receiver.stop())
  const numbers = Array.from({ length: destinations }, (_, number) => number)
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: numbers.map((number) => ({
        id: `d${number}`,
        sources: ['shop'],
        hooks: [{ url: receiver.url(`/${number}`).replace('127.0.0.1', host) }],
      })),
    },
    variables: {
      SLUICE_DELIVERY_MAX_IN_FLIGHT: '64',
      SLUICE_DELIVERY_POOL_IDLE: '10m',
      SLUICE_DELIVERY_LANE_WAIT: '10m',
      ...variables,
    },
  })
  onTestFinished(() => scene.close())
  return { receiver, scene }
}

test('a worker with more destinations than it may open files delivers all messages, and parks none', async () => {
  const destinations = 400
  const maxOpenFiles = 380
  const { scene } = await setFanOut(destinations, {})
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
    'fewer connections to URLs than configured (delivery.maxInFlight, delivery.maxInFlightSick, delivery.maxIdleConnections): the system allows too few open files (ulimit -n)',
  )
})

test('a worker that can open no more files says so, holds no endpoint responsible, and goes on when it can', async () => {
  const destinations = 100
  const dns = await startDnsServer(zone({ 'hook.test': ['127.0.0.1'] }))
  onTestFinished(() => dns.stop())
  const variables = { SLUICE_BREAKER_MIN_RESULTS: '1', SLUICE_DELIVERY_DNS_SERVERS: dns.address }
  const { scene } = await setFanOut(destinations, variables, 'hook.test')
  const worker = await startSluice(scene.variables)
  onTestFinished(() => worker.kill())
  // The worker has more files open than this limit, so it finds no free file descriptor.
  limitOpenFiles(worker.pid, 10)
  const messages = 2
  await scene.send('shop', newIds(messages))
  const said = await until('it says so', () => worker.log.find(({ outcome }) => outcome === 'files'))
  expect(said).toMatchObject({
    level: 'error',
    code: 'EMFILE',
    msg: 'no request was sent, because no more files can be opened: raise the limit of open files (ulimit -n)',
  })

  limitOpenFiles(worker.pid, 10_000)
  const delivered = () => worker.metric('sluice_deliveries_total', { verdict: 'delivered' })
  await until('all is delivered', async () => (await delivered()) === messages * destinations)
  // Every attempt that was counted has delivered its message. So the breakers have seen no failed attempt.
  expect(await worker.metric('sluice_attempts_total')).toBe(messages * destinations)
  expect(await worker.metric('sluice_parked_total')).toBe(0)
})

function limitOpenFiles(pid: number, count: number): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${count}:`])
}
