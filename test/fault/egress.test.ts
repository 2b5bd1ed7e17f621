import { expect, onTestFinished, test } from 'vitest'
import { newIds, setScene } from '../e2e/scene.ts'
import { startDnsServer, zone } from '../support/dns-server.ts'
import { answer, type Script, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { startSluice } from '../support/worker-process.ts'

const failingAfterMs = 25_000
const minute = 60_000

/** Returns the address of the endpoint with this number. Each endpoint is another machine. */
const addressOf = (number: number): string => `127.0.3.${number + 1}`

/**
 * Starts a DNS server whose names lead to the receivers. While `isBroken` is true, the names lead to an
 * address where nothing listens.
 */
async function startNames(names: readonly string[]) {
  const state = { isBroken: false }
  const dns = await startDnsServer((question) => {
    const reply = zone(
      Object.fromEntries(names.map((name, at) => [name, [state.isBroken ? '127.0.0.9' : addressOf(at)]])),
    )(question)
    return reply === 'NXDOMAIN' ? reply : { ...reply, ttlSeconds: 1 }
  })
  onTestFinished(() => dns.stop())
  return { address: dns.address, state }
}

test('a worker whose network leads nowhere says so, and no customer is told that an endpoint fails', async () => {
  const ids = Array.from({ length: 12 }, (_, number) => `d${number}`)
  const names = ids.map((id) => `${id}.test`)
  let isFirstDown = false
  const script: Script = (request, response, nth) => {
    const isDown = isFirstDown && request.path === '/d0'
    answer(isDown ? 500 : 200, { connection: 'close' })(request, response, nth)
  }
  const hosts = ['127.0.0.1', ...ids.map((_id, at) => addressOf(at))]
  const [ops, ...endpoints] = await Promise.all(hosts.map((host) => startReceiver(script, { host })))
  if (ops === undefined) throw new Error('all receivers have started')
  onTestFinished(async () => void (await Promise.all([ops, ...endpoints].map((one) => one.stop()))))
  const [broken, sound] = [await startNames(names), await startNames(names)]
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }, { id: 'sluice' }],
      destinations: [
        ...ids.map((id, at) => ({
          id,
          sources: ['shop'],
          hooks: [{ url: `http://${id}.test:${endpoints[at]?.port}/${id}` }],
        })),
        { id: 'ops', sources: ['sluice'], hooks: [{ url: `${ops.origin}/ops` }] },
      ],
    },
    variables: {
      SLUICE_TOPICS_PARTITIONS: '4',
      SLUICE_WORKER_PROCESSES: '1',
      SLUICE_NOTICES_FAILING_AFTER: `${failingAfterMs}ms`,
      SLUICE_RETRY_LADDER: '2s',
      SLUICE_RETRY_THEN: '2s',
      SLUICE_RETRY_LIMIT: '10m',
      SLUICE_BREAKER_MAX_OPEN_FOR: '5s',
    },
  })
  onTestFinished(() => scene.close())
  const [sick, well] = await Promise.all(
    [broken, sound].map(async ({ address }) => {
      const worker = await startSluice({ ...scene.variables, SLUICE_DELIVERY_DNS_SERVERS: address })
      onTestFinished(() => worker.kill())
      return worker
    }),
  )
  if (sick === undefined || well === undefined) throw new Error('both workers have started')
  const suspect = (worker: typeof sick) => worker.metric('sluice_egress_suspect')
  const told = () => ops.requestsTo('/ops').map(({ body }) => String(JSON.parse(body.toString()).event))
  const sent: string[] = []
  const sendUntil = async (what: string, isSo: () => Promise<boolean> | boolean) => {
    await until(
      what,
      async () => {
        const more = newIds(8)
        sent.push(...more)
        await scene.send('shop', more)
        return isSo()
      },
      { timeoutMs: 2 * minute },
    )
  }
  const isDelivered = () =>
    ids.every((id, at) => {
      const arrived = new Set(
        endpoints[at]?.requestsTo(`/${id}`).map(({ body }) => String(JSON.parse(body.toString()).messageId)),
      )
      return sent.every((messageId) => arrived.has(messageId))
    })

  await sendUntil('both deliver', async () => {
    const counts = [sick, well].map((worker) =>
      worker.metric('sluice_deliveries_total', { verdict: 'delivered' }),
    )
    return (await Promise.all(counts)).every((count) => count > 0)
  })

  broken.state.isBroken = true
  const brokenMs = Date.now()
  await sendUntil('the network is suspect', async () => (await suspect(sick)) === 1)
  expect(await suspect(well)).toBe(0)
  const said = await until('it says so', () => sick.log.find(({ lost }) => lost === ids.length))
  expect(said).toMatchObject({
    level: 'error',
    msg: expect.stringContaining(
      'can not be reached any more: check the network, DNS and firewall of this worker',
    ),
    dead: 0,
    working: 0,
  })
  expect(await sick.metric('sluice_egress_servers', { state: 'lost' })).toBe(ids.length)
  await sendUntil('endpoints would be reported', () => Date.now() > brokenMs + 2 * failingAfterMs)
  expect(told()).toEqual([])
  expect(await sick.metric('sluice_egress_withheld_failures_total')).toBeGreaterThan(0)

  broken.state.isBroken = false
  await sendUntil('the network is not suspect any more', async () => (await suspect(sick)) === 0)
  await until('all is delivered', isDelivered, { timeoutMs: minute })
  expect(sick.log.map(({ msg }) => msg)).toContain(
    'servers answer again: the network of this worker is not suspect any more',
  )
  expect(told()).toEqual([])

  isFirstDown = true
  await sendUntil('the endpoint that fails is reported', () => told().length > 0)
  expect(told()).toEqual(['Endpoint Failing'])
})
