import { setTimeout as passTime } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newIds, type Scene, type SceneOptions, setScene, unhurried } from '../e2e/scene.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { countRecords } from '../support/kafka.ts'
import { type ProxiedKafka, startProxiedKafka } from '../support/proxied-kafka.ts'
import { probe } from '../support/shop.ts'
import { startSteadyProducer, type SteadyProducer } from '../support/steady-producer.ts'
import { createTrust, type Scheme, type Trust } from '../support/trust.ts'
import { type Proxy, startToxiproxy, type Toxic, type Toxiproxy } from '../support/toxiproxy.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'

/** The time limit of the start, in milliseconds. The first start downloads and builds Toxiproxy. */
const mostBuildMs = 10 * 60_000

let toxiproxy: Toxiproxy
/** The number of proxies in front of destinations so far. Each proxy gets this number in its name. */
let proxies = 0
let receiver: CountingReceiver
let scene: Scene | undefined
let worker: SluiceProcess | undefined
let producer: SteadyProducer | undefined

beforeAll(async () => {
  toxiproxy = await startToxiproxy()
}, mostBuildMs)

afterAll(async () => {
  await toxiproxy.stop()
})

beforeEach(async () => {
  receiver = await startCountingReceiver()
})

afterEach(async () => {
  await producer?.stop().catch(() => undefined)
  producer = undefined
  if (worker?.isRunning) await worker.kill()
  worker = undefined
  scene?.close()
  scene = undefined
  await receiver.stop()
})

/** Waits while a fault lasts. The fault has to last this long, so there is nothing to poll for. */
async function faultHolds(forMs: number): Promise<void> {
  await passTime(forMs)
}

async function delivered(path: string): Promise<number> {
  return (await receiver.count(path)).delivered
}

async function begin(options: SceneOptions): Promise<{ scene: Scene; worker: SluiceProcess }> {
  scene = await setScene(options)
  worker = await startSluice(scene.variables)
  return { scene, worker }
}

/**
 * Checks that no message was lost, and that faults between Sluice and Kafka used up no try. Checks the
 * messages of `quick`, which the worker has fetched and delivered at once. Also checks the messages of
 * `slow`. This destination is so slow that the worker has produced most of its messages to the retry topic.
 */
async function expectAll(begun: {
  worker: SluiceProcess
  scene: Scene
  ids: readonly string[]
}): Promise<void> {
  await producer?.stop()
  const { ids } = begun
  await until('all that was fetched has arrived', async () => (await delivered('/quick')) === ids.length, {
    timeoutMs: 90_000,
  })
  await until('it is ready again', async () => (await probe(begun.worker, '/readyz')).status === 200)
  await receiver.behave('/slow', {})
  await until('all that was produced has arrived', async () => (await delivered('/slow')) === ids.length, {
    timeoutMs: 60_000,
  })
  await until('all is committed', async () => (await begun.scene.lag()) === 0, {
    timeoutMs: 60_000,
    everyMs: 250,
  })
  expect(new Set((await receiver.arrivals('/quick')).keys())).toEqual(new Set(ids))
  expect(new Set((await receiver.arrivals('/slow')).keys())).toEqual(new Set(ids))
  expect(begun.worker.isRunning).toBe(true)
  const parked = await begun.worker.metric('sluice_parked_total', { reason: 'overflow' })
  expect(parked).toBeGreaterThan(0)
  expect(await begun.worker.metric('sluice_parked_total', { reason: 'failed' })).toBe(0)
  expect(await begun.worker.metric('sluice_dead_letters_total')).toBe(0)
  const [quick, slow] = [await receiver.count('/quick'), await receiver.count('/slow')]
  process.stdout.write(
    `${ids.length} messages, ${parked} times parked: ` +
      `repeated ${quick.requests - ids.length} of what was fetched, ${slow.requests - ids.length} of what was produced\n`,
  )
}

/**
 * The longest time, in milliseconds, until the worker says that it isn't ready. A message that waits in its
 * lane is written to the retry topic within 2 s. The worker reports a write after 3 s if Kafka has not
 * acknowledged it.
 */
const mostUntilToldMs = 10_000

describe('between a worker and Kafka', () => {
  let kafka: ProxiedKafka
  let proxy: Proxy

  beforeAll(async () => {
    kafka = await startProxiedKafka(toxiproxy)
    proxy = kafka.proxyOf(1)
  })

  afterAll(async () => {
    await kafka.stop()
  })

  afterEach(async () => {
    await proxy.heal()
  })

  /** Opens a scene in which only the worker is behind the proxy. */
  const beginBehindProxy = async (options: SceneOptions) =>
    begin({
      ...options,
      brokers: kafka.direct,
      variables: { ...unhurried, SLUICE_KAFKA_BROKERS: kafka.proxied.join(), ...options.variables },
    })

  /**
   * Starts a worker, and a producer that sends messages all the time. The fault doesn't affect the producer.
   * Waits until the worker has parked more than 100 messages.
   */
  async function getUnderWay(): Promise<{ worker: SluiceProcess; scene: Scene; ids: readonly string[] }> {
    await receiver.behave('/slow', { delayMs: 500 })
    const begun = await beginBehindProxy({
      catalog: {
        sources: [{ id: 'shop' }],
        destinations: [
          { id: 'quick', sources: ['shop'], hooks: [{ url: receiver.url('/quick') }] },
          { id: 'slow', sources: ['shop'], maxInFlight: 2, hooks: [{ url: receiver.url('/slow') }] },
        ],
      },
      variables: { SLUICE_DELIVERY_LANE_WAIT: '2s', SLUICE_RETRY_LADDER: '5s', SLUICE_RETRY_THEN: '5s' },
    })
    producer = await startSteadyProducer({
      brokers: kafka.direct,
      topic: `${begun.scene.prefix}events`,
      sourceId: 'shop',
      perSecond: 30,
    })
    await until('what is too much is produced', async () => {
      return (await begun.worker.metric('sluice_parked_total', { reason: 'overflow' })) > 100
    })
    return { ...begun, ids: producer.ids }
  }

  test('answers that take 2 s are waited for: all goes on meanwhile', async () => {
    const begun = await getUnderWay()
    await proxy.add({
      type: 'latency',
      stream: 'downstream',
      attributes: { latency: 2_000, jitter: 200 },
    })
    const produced = begun.ids.length
    await faultHolds(20_000)
    expect(await delivered('/quick')).toBeGreaterThan(produced + 100)
    await proxy.heal()
    await expectAll(begun)
  })

  const resets: Toxic[] = [
    { type: 'reset_peer', stream: 'upstream', attributes: { timeout: 0 } },
    { type: 'reset_peer', stream: 'downstream', attributes: { timeout: 0 } },
  ]
  test.each<{ fault: string; begin: () => Promise<void>; holdsMs: number }>([
    {
      fault: 'every connection is reset',
      begin: async () => {
        for (const toxic of resets) await proxy.add(toxic)
      },
      holdsMs: 15_000,
    },
    {
      fault: 'hardly anything passes',
      begin: async () => {
        await proxy.add({ type: 'bandwidth', stream: 'upstream', attributes: { rate: 2 } })
        await proxy.add({ type: 'bandwidth', stream: 'downstream', attributes: { rate: 2 } })
      },
      holdsMs: 20_000,
    },
    { fault: 'no connection is accepted', begin: () => proxy.disable(), holdsMs: 20_000 },
  ])(
    'while $fault, the worker says that it is not ready, and afterwards goes on by itself',
    async ({ begin: beginFault, holdsMs }) => {
      const begun = await getUnderWay()
      await beginFault()
      const [{ text }] = await Promise.all([
        until(
          'it is not ready',
          async () => {
            const now = await probe(begun.worker, '/readyz')
            return now.status === 503 ? now : undefined
          },
          { timeoutMs: mostUntilToldMs },
        ),
        faultHolds(holdsMs),
      ])
      expect(text).toMatch(/Kafka does not accept writes|not joined/)
      expect(begun.worker.isRunning).toBe(true)
      await proxy.heal()
      await expectAll(begun)
    },
  )

  test('a network that swallows everything shows at once even to a worker that has nothing to do', async () => {
    const begun = await beginBehindProxy({
      catalog: {
        sources: [{ id: 'shop' }],
        destinations: [{ id: 'quick', sources: ['shop'], hooks: [{ url: receiver.url('/quick') }] }],
      },
      variables: { SLUICE_KAFKA_SESSION_TIMEOUT: '6s' },
    })
    for (const stream of ['upstream', 'downstream'] as const)
      await proxy.add({ type: 'timeout', stream, attributes: { timeout: 0 } })
    const isReady = async () => (await probe(begun.worker, '/readyz')).status === 200
    await until('it is not ready', async () => !(await isReady()), { timeoutMs: 6_000 + mostUntilToldMs })
    await until('its commits are known to be old', async () => {
      return (await begun.worker.metric('sluice_commit_age_seconds')) > 6
    })
    await proxy.heal()
    await until('it is ready again', isReady, { timeoutMs: 90_000 })
    expect(begun.worker.isRunning).toBe(true)
  })

  test('retries whose acknowledgements are lost are written again, and every message arrives', async () => {
    await receiver.behave('/hook', { failFirstOfEvery: 2, delayMs: 20 })
    const begun = await beginBehindProxy({
      catalog: {
        sources: [{ id: 'shop' }],
        destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url('/hook') }] }],
      },
      variables: { SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s' },
    })
    producer = await startSteadyProducer({
      brokers: kafka.direct,
      topic: `${begun.scene.prefix}events`,
      sourceId: 'shop',
      perSecond: 100,
    })
    for (let cut = 1; cut <= 15; cut++) {
      // Waits for new retries, so that each cut hits writes in flight.
      const before = await begun.worker.metric('sluice_parked_total', { reason: 'failed' })
      await until('retries are produced', async () => {
        return (await begun.worker.metric('sluice_parked_total', { reason: 'failed' })) > before
      })
      // Requests pass, but their answers don't.
      await proxy.add({ type: 'timeout', stream: 'downstream', attributes: { timeout: 200 } })
      await faultHolds(300)
      await proxy.heal()
    }
    await producer.stop()
    const { ids } = producer
    await until('all has arrived', async () => (await delivered('/hook')) === ids.length, {
      timeoutMs: 60_000,
    })
    await until('all is committed', async () => (await begun.scene.lag()) === 0, {
      timeoutMs: 60_000,
      everyMs: 250,
    })
    const parked = await begun.worker.metric('sluice_parked_total', { reason: 'failed' })
    const written = await countRecords(`${begun.scene.prefix}retry.1s`, kafka.direct)
    const { requests, repeats } = await receiver.count('/hook')
    process.stdout.write(
      `${ids.length} messages: ${parked} parked, ${written} records of the retry topic, ` +
        `${requests} requests, ${repeats} repeats after a success\n`,
    )
    expect(written).toBeGreaterThan(parked)
    expect(await begun.worker.metric('sluice_dead_letters_total')).toBe(0)
    expect(begun.worker.isRunning).toBe(true)
  })
})

/**
 * Checks that the other destination gets each message exactly once within 5 s, whatever happens at the first
 * destination.
 */
async function expectOtherUnaffected(ids: readonly string[]): Promise<void> {
  await until('the other one has all', async () => (await delivered('/other')) === ids.length, {
    timeoutMs: 5_000,
  })
  expect((await receiver.count('/other')).requests).toBe(ids.length)
}

async function expectAllAt(path: string, ids: readonly string[]): Promise<void> {
  await until('all has arrived', async () => (await delivered(path)) === ids.length, { timeoutMs: 60_000 })
  expect(new Set((await receiver.arrivals(path)).keys())).toEqual(new Set(ids))
}

const schemes: Scheme[] = ['http', 'https']

describe.each(schemes)('between a worker and one of two destinations over %s', (scheme) => {
  let proxy: Proxy
  let trust: Trust

  beforeEach(async () => {
    trust = createTrust(scheme)
    await receiver.stop()
    receiver = await startCountingReceiver(trust.secured)
    proxy = await toxiproxy.proxy(`receiver-${++proxies}`, Number(new URL(receiver.url('/')).port))
  })

  afterEach(async () => {
    await proxy.disable()
    trust.remove()
  })

  const beginWithTwo = async (variables: Record<string, string> = {}) =>
    begin({
      catalog: {
        sources: [{ id: 'shop' }],
        destinations: [
          {
            id: 'troubled',
            sources: ['shop'],
            maxInFlight: 100,
            hooks: [{ url: `${scheme}://127.0.0.1:${proxy.port}/troubled` }],
          },
          { id: 'other', sources: ['shop'], maxInFlight: 100, hooks: [{ url: receiver.url('/other') }] },
        ],
      },
      variables: {
        ...trust.variables,
        SLUICE_RETRY_LADDER: '1s,2s',
        SLUICE_RETRY_THEN: '2s',
        ...variables,
      },
    })

  const failed = { reason: 'failed' }

  test('answers that take seconds count as answers: every message is delivered at once', async () => {
    // Over TLS, a first request waits for the latency twice, and all first connections are made at once. So
    // the latency is shorter over TLS.
    const latency = scheme === 'http' ? 3_000 : 1_000
    await proxy.add({ type: 'latency', stream: 'downstream', attributes: { latency } })
    const begun = await beginWithTwo(unhurried)
    const ids = newIds(200)
    await begun.scene.send('shop', ids)
    await expectOtherUnaffected(ids)
    await expectAllAt('/troubled', ids)
    await until('all is committed', async () => (await begun.scene.lag()) === 0, { everyMs: 250 })
    expect((await receiver.count('/troubled')).requests).toBe(ids.length)
    expect(await begun.worker.metric('sluice_parked_total')).toBe(0)
  })

  test('requests that hardly pass are slow, and delivered at once', async () => {
    await proxy.add({ type: 'bandwidth', stream: 'upstream', attributes: { rate: 1 } })
    const begun = await beginWithTwo(unhurried)
    const ids = newIds(300)
    await begun.scene.send('shop', ids)
    await expectOtherUnaffected(ids)
    expect(await delivered('/troubled')).toBeLessThan(ids.length)
    await expectAllAt('/troubled', ids)
    expect((await receiver.count('/troubled')).requests).toBe(ids.length)
    expect(await begun.worker.metric('sluice_parked_total')).toBe(0)
  })

  test('connections that are reset are tried again, until all is delivered', async () => {
    await proxy.add({ type: 'reset_peer', stream: 'upstream', attributes: { timeout: 0 } })
    const begun = await beginWithTwo(unhurried)
    const ids = newIds(200)
    await begun.scene.send('shop', ids)
    await expectOtherUnaffected(ids)
    await until(
      'each was tried',
      async () => (await begun.worker.metric('sluice_parked_total', failed)) >= ids.length,
    )
    expect((await receiver.count('/troubled')).requests).toBe(0)
    await proxy.heal()
    await expectAllAt('/troubled', ids)
  })

  test('a destination that refuses connections for 20 s gets all of it later', async () => {
    const begun = await beginWithTwo({ SLUICE_BREAKER_MAX_OPEN_FOR: '5s' })
    await proxy.disable()
    const ids = newIds(500)
    await begun.scene.send('shop', ids)
    await Promise.all([expectOtherUnaffected(ids), faultHolds(20_000)])
    expect((await receiver.count('/troubled')).requests).toBe(0)
    await proxy.heal()
    await expectAllAt('/troubled', ids)
    await until('all is committed', async () => (await begun.scene.lag()) === 0, { everyMs: 250 })
    expect((await receiver.count('/other')).requests).toBe(ids.length)
    expect(await begun.worker.metric('sluice_parked_total', failed)).toBeGreaterThan(0)
    expect(await begun.worker.metric('sluice_dead_letters_total')).toBe(0)
  })
})
