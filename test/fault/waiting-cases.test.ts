import { afterEach, beforeEach, expect, test } from 'vitest'
import { newIds, type Scene, setScene } from '../e2e/scene.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { countRecords, readAll } from '../support/kafka.ts'
import type { SluiceProcess } from '../support/sluice-process.ts'
import { until } from '../support/until.ts'
import { type CatalogData, runToEnd, startSluice } from '../support/worker-process.ts'

/**
 * What users of other queues have reported of theirs: messages that are stuck after a pause or a rebalance, that come
 * twice after a restart, that hold up others, or that use up a rate for nothing.
 */

const path = '/crm'
/** So short that a test can wait for it, and so long that a worker can come and go meanwhile. */
const rungMs = 20_000

let receiver: CountingReceiver
let scene: Scene
const workers: SluiceProcess[] = []

function catalogOf(destination: object = {}): CatalogData {
  const crm = { id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url(path) }], ...destination }
  return { sources: [{ id: 'shop' }], destinations: [crm] }
}

async function open(destination: object, variables: Record<string, string> = {}): Promise<void> {
  scene = await setScene({
    catalog: catalogOf(destination),
    variables: {
      SLUICE_REPEATS_WINDOW: '0s',
      SLUICE_LOG_ATTEMPTS: 'false',
      SLUICE_RETRY_LADDER: `${rungMs}ms`,
      SLUICE_RETRY_THEN: `${rungMs}ms`,
      ...variables,
    },
  })
}

async function join(): Promise<SluiceProcess> {
  const worker = await startSluice(scene.variables, { readyMs: 60_000 })
  workers.push(worker)
  return worker
}

beforeEach(async () => {
  receiver = await startCountingReceiver()
})

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()))
  await receiver.stop()
  scene.close()
})

async function send(count: number): Promise<string[]> {
  const ids = newIds(count)
  await scene.send('shop', ids)
  return ids
}

/** Resolves when all workers know the state of the destination. */
async function untilState(state: string): Promise<void> {
  await until(`it is ${state}`, async () => {
    const known = workers.map((worker) => worker.metric('sluice_catalog_destinations', { state }))
    return (await Promise.all(known)).every((count) => count === 1)
  })
}

async function allOnRung(count: number): Promise<void> {
  const rung = `${scene.prefix}retry.${rungMs / 1_000}s`
  await until('all wait for a retry', async () => (await countRecords(rung)) >= count)
}

async function untilCame(count: number, timeoutMs = 60_000): Promise<void> {
  await until('all came', async () => (await receiver.arrivals(path)).size >= count, { timeoutMs })
}

async function untilDelivered(count: number, timeoutMs = 90_000): Promise<void> {
  await until('all were taken', async () => (await receiver.count(path)).delivered >= count, { timeoutMs })
}

test('retries that fall due during a pause, and are asked for meanwhile, come after it with what waits, though a worker came and went', async () => {
  await open({})
  await join()
  await receiver.behave(path, { status: 500 })
  await send(20)
  await allOnRung(20)
  const failed = (await receiver.count(path)).requests
  scene.catalog.rewrite(catalogOf({ state: 'paused' }))
  await untilState('paused')
  await receiver.behave(path, {})
  const later = await send(100)
  await until(
    'the later ones wait',
    async () => (await countRecords(`${scene.prefix}waiting`)) >= later.length,
  )
  await runToEnd(['destinations', 'retry-now', 'crm'], scene.variables)
  const second = await join()
  await until(
    'the retries are due, and wait too',
    async () => (await countRecords(`${scene.prefix}waiting`)) >= 120,
    {
      timeoutMs: 2 * rungMs,
    },
  )
  await second.terminate()
  expect((await receiver.count(path)).requests).toBe(failed)
  scene.catalog.rewrite(catalogOf({}))
  await untilDelivered(120)
  await until('all is committed', async () => (await scene.lag()) === 0, { timeoutMs: 60_000 })
  expect(await receiver.count(path)).toMatchObject({ requests: failed + 120, repeats: 0 })
})

test('a retry is made though its partition went to another worker and came back while it waited', async () => {
  await open({})
  await join()
  await receiver.behave(path, { status: 500 })
  await send(30)
  await allOnRung(30)
  await receiver.behave(path, {})
  await (await join()).terminate()
  await untilDelivered(30, 3 * rungMs)
  expect(await receiver.count(path)).toMatchObject({ repeats: 0 })
})

test('retries that fall due while no worker runs are made when one does', async () => {
  await open({})
  const first = await join()
  await receiver.behave(path, { status: 500 })
  await send(30)
  await allOnRung(30)
  const failedAtMs = Date.now()
  await first.terminate()
  await receiver.behave(path, {})
  await until('they are due', () => Date.now() > failedAtMs + rungMs, { timeoutMs: 2 * rungMs })
  await join()
  await untilDelivered(30)
  expect(await receiver.count(path)).toMatchObject({ repeats: 0 })
})

test('messages that wait for a retry take no place of others, however few may be in flight', async () => {
  await open({ maxInFlight: 2 }, { SLUICE_RETRY_LADDER: '10m', SLUICE_RETRY_THEN: '10m' })
  await join()
  await receiver.behave(path, { failFirstOfEvery: 2 })
  await send(400)
  // The others don't wait for the ten minutes of those that have failed.
  await untilDelivered(200, 30_000)
  expect(await receiver.count(path)).toMatchObject({ repeats: 0 })
})

test('ten thousand messages come after a long pause, and none comes again after restarts', async () => {
  const count = 10_000
  await open({ state: 'paused' })
  const first = await join()
  await send(count)
  await until('all wait', async () => (await first.metric('sluice_waiting_messages')) === count, {
    timeoutMs: 120_000,
  })
  scene.catalog.rewrite(catalogOf({}))
  await untilDelivered(count, 180_000)
  for (let restart = 0; restart < 2; restart++) {
    for (const worker of workers.filter(({ isRunning }) => isRunning)) await worker.terminate()
    await join()
    const last = await send(1)
    await until('a later one came', async () => (await receiver.arrivals(path)).has(String(last[0])))
  }
  expect(await receiver.count(path)).toMatchObject({ requests: count + 2, repeats: 0 })
})

test('a rate holds from the first second after all workers were killed', async () => {
  const perSecond = 20
  await open({ rateLimit: { perSecond, burst: 2 } })
  await Promise.all([join(), join()])
  await send(500)
  await untilCame(100)
  await Promise.all(workers.splice(0).map((worker) => worker.kill()))
  await Promise.all([join(), join()])
  await untilDelivered(500, 120_000)
  const times = [...(await receiver.arrivals(path)).values()].flat().toSorted((a, b) => a - b)
  for (const seconds of [5, 10]) {
    let [most, first] = [0, 0]
    for (const [index, atMs] of times.entries()) {
      while ((times[first] ?? 0) < atMs - seconds * 1_000) first++
      most = Math.max(most, index - first + 1)
    }
    // A worker that is killed and starts again has its burst again. On a busy machine, requests of two seconds may
    // arrive together.
    expect(most, `within ${seconds} s`).toBeLessThanOrEqual((seconds + 2) * perSecond + 2 * 2)
  }
})

test('a message that a mapping is for overtakes nothing and waits for none of those that are not sent', async () => {
  const mappings = [
    { condition: 'properties.order.endsWith("-0")', body: { messageId: { '@path': '$.messageId' } } },
  ]
  await open({ rateLimit: { perSecond: 1, burst: 1 }, mappings })
  await join()
  await send(500)
  await send(1)
  await untilCame(2, 20_000)
  expect(await receiver.count(path)).toMatchObject({ requests: 2 })
})

test('what is sent while a destination is given up is a dead letter or waits, and nothing is lost or comes twice', async () => {
  await open({ state: 'paused' })
  await Promise.all([join(), join()])
  const ids: string[] = []
  async function sendAll(): Promise<void> {
    for (let part = 0; part < 30; part++) ids.push(...(await send(100)))
  }
  async function drop(): Promise<void> {
    await until('some wait', async () => (await countRecords(`${scene.prefix}waiting`)) > 500)
    const { code } = await runToEnd(['destinations', 'drop', 'crm', '--waiting', '--yes'], scene.variables)
    expect(code).toBe(0)
  }
  await Promise.all([sendAll(), drop()])
  const dropped = async () =>
    (await readAll(`${scene.prefix}dead-letters`)).map(({ headers }) => String(headers['message-id']))
  await until('some are dead letters', async () => (await dropped()).length > 0)
  await until('all is committed or waits', async () => {
    const counts = await Promise.all(workers.map((worker) => worker.metric('sluice_waiting_messages')))
    return counts.reduce((sum, one) => sum + one, 0) + (await dropped()).length === ids.length
  })
  scene.catalog.rewrite(catalogOf({}))
  await until('all is committed', async () => (await scene.lag()) === 0, { timeoutMs: 60_000 })
  const ends = [...(await receiver.arrivals(path)).keys(), ...(await dropped())]
  expect(ends.toSorted()).toEqual(ids.toSorted())
  expect(await receiver.count(path)).toMatchObject({ repeats: 0 })
})

test('a rate that is raised, or taken away, holds at once for what waits', async () => {
  const crawl = { perSecond: 0.01, burst: 1 }
  await open({ rateLimit: crawl })
  const worker = await join()
  await send(200)
  await until('the rest waits', async () => (await worker.metric('sluice_waiting_messages')) > 0)
  await untilCame(1)
  scene.catalog.rewrite(catalogOf({ rateLimit: { perSecond: 100, burst: 100 } }))
  await untilDelivered(200, 20_000)
  scene.catalog.rewrite(catalogOf({ rateLimit: crawl }))
  await send(200)
  await until('the rest waits', async () => (await worker.metric('sluice_waiting_messages')) > 0)
  scene.catalog.rewrite(catalogOf())
  await untilDelivered(400, 20_000)
  expect(await receiver.count(path)).toMatchObject({ requests: 400, repeats: 0 })
})

test('an endpoint that asks for a wait of 317 years holds nothing back once its URL is another one', async () => {
  await open({}, { SLUICE_RETRY_LADDER: '10m', SLUICE_RETRY_THEN: '10m' })
  await join()
  await receiver.behave(path, { status: 429, headers: { 'Retry-After': '9999999999' } })
  await send(50)
  await until('it has asked for it', async () => (await receiver.count(path)).requests > 0)
  const moved = '/moved'
  scene.catalog.rewrite(catalogOf({ hooks: [{ url: receiver.url(moved) }] }))
  await until('all came', async () => (await receiver.count(moved)).delivered >= 50, { timeoutMs: 60_000 })
  expect(await receiver.count(moved)).toMatchObject({ requests: 50 })
})
