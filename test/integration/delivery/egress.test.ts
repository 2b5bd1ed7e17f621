import { afterEach, expect, onTestFinished, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import { EgressHealth } from '../../../src/delivery/send/egress-health.ts'
import { createProxy } from '../../../src/delivery/connect/proxy.ts'
import { createResolver } from '../../../src/delivery/connect/resolver.ts'
import { createSender, type Sender, type Target } from '../../../src/delivery/send/sender.ts'
import { startConnectProxy } from '../../support/connect-proxy.ts'
import { type DnsReply, startDnsServer, zone } from '../../support/dns-server.ts'
import {
  answer,
  neverAnswer,
  type Receiver,
  startRawReceiver,
  startReceiver,
} from '../../support/receiver.ts'

const ended: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

async function started<T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> {
  const server = await starting
  ended.push(() => server.stop())
  return server
}

type Taken = { host: string; kind: string; wasSent: boolean; address: string | undefined }

/** Starts a sender that tells `taken` what the judgement about the network hears. */
async function startSending({
  proxyPort,
  timeoutMs = 30_000,
}: { proxyPort?: number; timeoutMs?: number } = {}) {
  const dns = await started(
    startDnsServer((question): DnsReply => zone({ 'shop.test': ['127.0.0.1'] })(question)),
  )
  const resolver = createResolver({ servers: [dns.address] })
  const proxy =
    proxyPort === undefined
      ? undefined
      : createProxy({ url: `http://127.0.0.1:${proxyPort}`, resolver, timeoutMs })
  const taken: Taken[] = []
  const egress = {
    take: (...[{ host }, { kind }, wasSent, address]: Parameters<EgressHealth['take']>) =>
      void taken.push({ host, kind, wasSent, address }),
  }
  const policy = createAddressPolicy(['127.0.0.1'])
  const by = createSender({ policy, resolver, proxy, timeoutMs, poolIdleMs: 2_000, egress })
  ended.push(async () => {
    await by.close()
    await proxy?.close()
    resolver.close()
  })
  return { by, taken }
}

async function post(by: Sender, to: Target): Promise<void> {
  await new Promise<void>((resolve) =>
    by.post(to, Buffer.from('{}'), [], { answered: () => undefined, released: resolve }),
  )
}

const targetOf = (origin: string, more: Partial<Target> = {}): Target => ({
  origin,
  path: '/',
  headers: [],
  ...more,
})

test('an answer names the address that gave it, and a failure to connect was not sent', async () => {
  const server = await started(startReceiver(answer(503)))
  const gone = await startReceiver()
  await gone.stop()
  const { by, taken } = await startSending()
  await post(by, targetOf(`http://shop.test:${server.port}`))
  await post(by, targetOf(gone.origin))
  await post(by, targetOf('http://nobody.test'))
  expect(taken).toEqual([
    { host: 'shop.test', kind: 'answer', wasSent: true, address: '127.0.0.1' },
    { host: '127.0.0.1', kind: 'connection', wasSent: false, address: undefined },
    { host: 'nobody.test', kind: 'dns', wasSent: false, address: undefined },
  ])
})

test('a request that got no answer on a connection that was made was sent', async () => {
  const silent = await started(startReceiver(neverAnswer))
  const closing = await started(startRawReceiver({ data: (socket) => socket.destroy() }))
  const { by, taken } = await startSending({ timeoutMs: 700 })
  await post(by, targetOf(silent.origin))
  await post(by, targetOf(closing.origin))
  expect(taken).toMatchObject([
    { kind: 'timeout', wasSent: true },
    { kind: 'connection', wasSent: true },
  ])
})

test('a server that ends no handshake of TLS was sent nothing', async () => {
  const mute = await started(startRawReceiver())
  const { by, taken } = await startSending({ timeoutMs: 700 })
  await post(by, targetOf(mute.origin.replace('http:', 'https:')))
  expect(taken).toMatchObject([{ kind: 'timeout', wasSent: false }])
})

test('the address of a proxy is not the address of a server', async () => {
  const server = await started(startReceiver())
  const proxy = await started(startConnectProxy(() => ({ port: server.port })))
  const { by, taken } = await startSending({ proxyPort: proxy.port })
  await post(by, targetOf('http://shop.test'))
  expect(taken).toEqual([{ host: 'shop.test', kind: 'answer', wasSent: true, address: undefined }])
})

/** Starts servers that close their connections after each answer. */
function startAll(count: number, hostOf: (at: number) => string): Promise<Receiver[]> {
  return Promise.all(
    Array.from({ length: count }, (_, at) =>
      started(startReceiver(answer(200, { connection: 'close' }), { host: hostOf(at) })),
    ),
  )
}

test('25 ports of one machine that close at once make nobody doubt the network', async () => {
  const changes: boolean[] = []
  const egress = new EgressHealth((isSuspect) => changes.push(isSuspect))
  const by = createSender({
    policy: createAddressPolicy(['127.0.0.0/8']),
    timeoutMs: 30_000,
    poolIdleMs: 2_000,
    egress,
  })
  onTestFinished(() => by.close())
  const shops = await startAll(21, (at) => `127.0.2.${at + 1}`)
  const ports = await startAll(25, () => '127.0.0.1')
  const targets = [...ports, ...shops].map(({ origin }, at) =>
    targetOf(origin, { owner: { destinationId: `d${at}`, sourceId: `s${at}` } }),
  )
  const judgeOften = async (): Promise<void> => {
    for (let times = 0; times < 6; times++) {
      await Promise.all(targets.map((to) => post(by, to)))
      egress.judge()
    }
  }
  await judgeOften()
  expect(egress.evidence).toEqual({ lost: 0, dead: 0, working: 22 })
  await Promise.all(ports.map((one) => one.stop()))
  await judgeOften()
  expect(egress.evidence).toEqual({ lost: 1, dead: 0, working: 21 })
  expect(changes).toEqual([])
  await Promise.all(shops.slice(0, 11).map((one) => one.stop()))
  await judgeOften()
  expect(changes).toEqual([true])
})
