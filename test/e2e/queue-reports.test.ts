import { expect, test } from 'vitest'
import { countRecords } from '../support/kafka.ts'
import { until } from '../support/until.ts'
import { runToEnd } from '../support/worker-process.ts'
import { lastArrived, path, tryOn } from './one-queue.ts'
import { newIds } from './scene.ts'

/** Faults that users of other queues have reported, tried on the queues of destinations. */

test('dead letters that are replayed keep their order, and new messages do not wait for them', async () => {
  const { scene, receiver, worker, catalogOf } = await tryOn({ maxInFlight: 1 })
  await receiver.behave(path, { status: 400 })
  const refused = newIds(120)
  await scene.send('shop', refused)
  const letters = `${scene.prefix}dead-letters`
  await until('all are dead letters', async () => (await countRecords(letters)) === refused.length)
  await receiver.behave(path, {})
  scene.catalog.rewrite(catalogOf({ maxInFlight: 1, rateLimit: { perSecond: 20, burst: 1 } }))
  const { code } = await runToEnd(
    ['replay', 'dead-letters', '--destination', 'crm', '--detach'],
    scene.variables,
  )
  expect(code).toBe(0)
  await until('the replay has begun', async () => (await receiver.count(path)).delivered >= 3)
  const fresh = newIds(10)
  await scene.send('shop', fresh)
  const sentBefore = (await receiver.count(path)).delivered
  const all = refused.length + fresh.length
  await until('all came', async () => (await receiver.count(path)).delivered === all)
  const order = await lastArrived(receiver)
  expect(order.filter((id) => refused.includes(id))).toEqual(refused)
  expect(order.filter((id) => fresh.includes(id))).toEqual(fresh)
  // Some more of the replay are sent until the worker has read them.
  expect(order.findLastIndex((id) => fresh.includes(id))).toBeLessThan(sentBefore + 50)
  expect(worker.isRunning).toBe(true)
})

test('a queue that is resumed while its endpoint still asks for a pause loses nothing, and is sent at once', async () => {
  const { scene, receiver, worker, catalogOf } = await tryOn({ rateLimit: { perSecond: 100, burst: 1 } })
  await receiver.behave(path, { status: 429, headers: { 'Retry-After': '8' } })
  const ids = newIds(80)
  await scene.send('shop', ids)
  await until('it has asked for a pause', async () => (await receiver.count(path)).requests > 0)
  const askedMs = performance.now()
  await receiver.behave(path, {})
  await worker.untilLogged('the catalog has changed', () =>
    scene.catalog.rewrite(catalogOf({ rateLimit: { perSecond: 100, burst: 1 }, state: 'paused' })),
  )
  scene.catalog.rewrite(catalogOf({ rateLimit: { perSecond: 100, burst: 1 } }))
  await until('all came', async () => (await receiver.count(path)).delivered === ids.length)
  const tookMs = performance.now() - askedMs
  process.stdout.write(`sent ${tookMs.toFixed(0)} ms after the wish for a pause\n`)
  expect(await receiver.count(path)).toMatchObject({ repeats: 0 })
  expect(await countRecords(`${scene.prefix}dead-letters`)).toBe(0)
})

test('messages behind one that is answered with a long pause are sent in their order when the pause ends, and take no step of the retries', async () => {
  const { scene, receiver } = await tryOn({ maxInFlight: 1 })
  await receiver.behave(path, { status: 429, headers: { 'Retry-After': '8' } })
  const ids = newIds(80)
  await scene.send('shop', ids)
  await until('it has asked for a pause', async () => (await receiver.count(path)).requests > 0)
  await receiver.behave(path, {})
  await until('the others came', async () => (await receiver.count(path)).delivered >= ids.length - 1)
  const once = [...(await receiver.arrivals(path))].filter(([, { length }]) => length === 1)
  expect(await countRecords(`${scene.prefix}retry.1m`)).toBeLessThanOrEqual(1)
  const order = once.toSorted(([, [one = 0]], [, [other = 0]]) => one - other).map(([id]) => id)
  const delivered = ids.filter((id) => order.includes(id))
  expect(order).toEqual(delivered)
})

test('a worker that sleeps while its queue waits for the rate goes on at the rate when it wakes up', async () => {
  const perSecond = 20
  const { scene, receiver, worker } = await tryOn({ rateLimit: { perSecond, burst: 1 } })
  const ids = newIds(140)
  await scene.send('shop', ids)
  await until('some came', async () => (await receiver.count(path)).distinct >= 20)
  process.kill(worker.pid, 'SIGSTOP')
  const sleptMs = performance.now()
  await until('it has slept', () => performance.now() - sleptMs > 4_000)
  const [wokeMs, before] = [Date.now(), (await receiver.count(path)).distinct]
  process.kill(worker.pid, 'SIGCONT')
  await until('all came', async () => (await receiver.count(path)).distinct === ids.length)
  const since = [...(await receiver.arrivals(path)).values()].flat().filter((ms) => ms >= wokeMs)
  const seconds = (Math.max(...since) - wokeMs) / 1_000
  process.stdout.write(`${since.length} in ${seconds.toFixed(1)} s after the sleep\n`)
  expect(await receiver.count(path)).toMatchObject({ repeats: 0 })
  expect(since.length).toBe(ids.length - before)
  // What it didn't use in its sleep is no credit.
  expect(seconds).toBeGreaterThan((since.length - perSecond) / perSecond)
})
