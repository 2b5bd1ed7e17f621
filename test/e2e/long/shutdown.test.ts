import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import { readAll } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { type SluiceProcess, startSluice } from '../../support/worker-process.ts'
import { newIds, unhurried, type Scene, type SceneOptions, setScene } from '../scene.ts'

let receiver: CountingReceiver
let scene: Scene | undefined
let worker: SluiceProcess | undefined

beforeEach(async () => {
  receiver = await startCountingReceiver()
})

afterEach(async () => {
  if (worker?.isRunning) await worker.kill()
  worker = undefined
  scene?.close()
  scene = undefined
  await receiver.stop()
})

/** Opens a scene, and starts a worker in it. */
async function begin({ variables = {}, ...options }: SceneOptions): Promise<Scene> {
  scene = await setScene({ ...options, variables: { ...unhurried, ...variables } })
  worker = await startSluice(scene.variables)
  return scene
}

/** Ends the worker with SIGTERM, checks that it exited well and in time, and starts another one. */
async function restart({ variables }: Scene): Promise<void> {
  await stop()
  worker = await startSluice(variables)
}

async function stop(): Promise<void> {
  const ended = await worker?.terminate()
  expect(ended?.code).toBe(0)
  expect(ended?.tookMs).toBeLessThan(10_000)
}

/**
 * Returns how many messages arrived once, twice and so on. The result is `{ 1: 3000 }` when each of 3,000
 * messages arrived once.
 */
async function histogram(path: string): Promise<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (const times of (await receiver.arrivals(path)).values())
    counts[times.length] = (counts[times.length] ?? 0) + 1
  return counts
}

async function allSettled(of: Scene): Promise<void> {
  await until('all is committed', async () => (await of.lag()) === 0, { timeoutMs: 60_000, everyMs: 250 })
}

const restarts = 2
const messages = 1_500

describe('SIGTERM under load drains within 10 s, and nothing is repeated', () => {
  test('with two destinations for each message, one fast and one slow', async () => {
    await receiver.behave('/slow', { delayMs: 200 })
    const of = await begin({
      catalog: {
        sources: [{ id: 'shop' }],
        destinations: [
          { id: 'fast', sources: ['shop'], maxInFlight: 20, hooks: [{ url: receiver.url('/fast') }] },
          { id: 'slow', sources: ['shop'], maxInFlight: 150, hooks: [{ url: receiver.url('/slow') }] },
        ],
      },
      variables: { SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s' },
    })
    const ids = newIds(messages)
    await of.send('shop', ids)
    for (let round = 1; round <= restarts; round++) {
      await until('a part has arrived', async () => (await receiver.count('/slow')).requests >= 450 * round)
      await restart(of)
    }
    await allSettled(of)
    expect(await histogram('/fast')).toEqual({ 1: ids.length })
    expect(await histogram('/slow')).toEqual({ 1: ids.length })
  })

  test('with a slow destination, and another that hangs until its time is up', async () => {
    await receiver.behave('/slow', { delayMs: 200 })
    await receiver.behave('/hung', { isHung: true })
    const of = await begin({
      catalog: {
        sources: [{ id: 'shop' }, { id: 'app' }],
        destinations: [
          { id: 'slow', sources: ['shop'], maxInFlight: 150, hooks: [{ url: receiver.url('/slow') }] },
          { id: 'hung', sources: ['app'], maxInFlight: 20, hooks: [{ url: receiver.url('/hung') }] },
        ],
      },
      // A parked message must not be tried again while the test runs.
      variables: { SLUICE_RETRY_LADDER: '1h', SLUICE_RETRY_THEN: '1h', SLUICE_DELIVERY_TIMEOUT: '4s' },
    })
    const ids = newIds(messages)
    const hung: string[] = []
    await of.send('shop', ids)
    for (let round = 1; round <= restarts; round++) {
      await until('a part has arrived', async () => (await receiver.count('/slow')).requests >= 450 * round)
      const ofRound = newIds(20)
      hung.push(...ofRound)
      await of.send('app', ofRound)
      await until('requests hang', async () => (await receiver.count('/hung')).inFlight > 0)
      await restart(of)
    }
    await until('all have arrived', async () => (await receiver.count('/slow')).delivered === ids.length)
    const parked = await readAll(`${of.prefix}retry.1h`, { count: hung.length })
    expect(parked.map(({ headers }) => headers['attempts'])).toEqual(hung.map(() => '1'))
    expect(await histogram('/slow')).toEqual({ 1: ids.length })
    expect(await histogram('/hung')).toEqual({ 1: hung.length })
  })
})

test('one of two workers ends by SIGTERM under load: the other takes over, and nothing is repeated', async () => {
  await receiver.behave('/slow', { delayMs: 200 })
  const of = await begin({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [
        { id: 'slow', sources: ['shop'], maxInFlight: 60, hooks: [{ url: receiver.url('/slow') }] },
      ],
    },
  })
  const other = await startSluice(of.variables)
  await until('they share the partitions', () => {
    const [one, two] = [worker?.log ?? [], other.log].map((log) =>
      log.findLast(({ msg }) => msg === 'joined the group'),
    )
    return one?.['partitions'] !== undefined && one['partitions'] === two?.['partitions']
  })
  const ids = newIds(messages)
  await of.send('shop', ids)
  await until('a part has arrived', async () => (await receiver.count('/slow')).requests >= 500)
  const { code, tookMs } = await other.terminate()
  expect(code).toBe(0)
  expect(tookMs).toBeLessThan(10_000)
  await allSettled(of)
  expect(await histogram('/slow')).toEqual({ 1: ids.length })
})

test('a delivery that was parked is not parked again when its record waits for another destination', async () => {
  await receiver.behave('/slow', { delayMs: 200 })
  const of = await begin({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [
        { id: 'slow', sources: ['shop'], maxInFlight: 5, hooks: [{ url: receiver.url('/slow') }] },
        {
          id: 'paused',
          state: 'paused',
          sources: ['shop'],
          hooks: [{ url: receiver.url('/paused') }],
        },
      ],
    },
    variables: { SLUICE_RETRY_LADDER: '1h', SLUICE_RETRY_THEN: '1h' },
  })
  const ids = newIds(200)
  await of.send('shop', ids)
  const parkedFor = async (destination: string): Promise<number> => {
    const records = await readAll(`${of.prefix}waiting`)
    return records.filter(({ headers }) => headers['destination-id'] === destination).length
  }
  await until('all are parked', async () => (await parkedFor('paused')) === ids.length, { everyMs: 250 })
  await restart(of)
  await until('the rest is delivered or parked', async () => {
    const { delivered } = await receiver.count('/slow')
    return delivered + (await parkedFor('slow')) >= ids.length
  })
  await stop()
  expect(await parkedFor('paused')).toBe(ids.length)
})
