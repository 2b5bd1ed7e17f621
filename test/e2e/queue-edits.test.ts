import { expect, onTestFinished, test } from 'vitest'
import { countRecords } from '../support/kafka.ts'
import { until } from '../support/until.ts'
import { startSluice } from '../support/worker-process.ts'
import { lastArrived, path, tryOn } from './one-queue.ts'
import { newIds } from './scene.ts'

/** Faults that users of other queues have reported about limits, pauses and restarts, tried on a destination. */

test('what waits for a slow rate is sent at a new rate at once, in its order', async () => {
  // Of several requests at once, which go over several connections, a busy machine may read a later one first.
  const maxInFlight = 1
  const { scene, receiver, catalogOf } = await tryOn({
    maxInFlight,
    rateLimit: { perSecond: 0.05, burst: 1 },
  })
  const ids = newIds(60)
  await scene.send('shop', ids)
  await until('the first came', async () => (await receiver.count(path)).delivered === 1)
  scene.catalog.rewrite(catalogOf({ maxInFlight, rateLimit: { perSecond: 100, burst: 1 } }))
  const editedMs = performance.now()
  await until('all came', async () => (await receiver.count(path)).delivered === ids.length)
  const tookMs = performance.now() - editedMs
  process.stdout.write(`all came ${tookMs.toFixed(0)} ms after the edit\n`)
  // At the old rate, the next message would come 20 s after the first one.
  expect(tookMs).toBeLessThan(15_000)
  expect(await lastArrived(receiver)).toEqual(ids)
})

test('after a burst, messages that come more slowly than the rate do not wait', async () => {
  const { scene, receiver, worker } = await tryOn({ maxInFlight: 1, rateLimit: { perSecond: 20, burst: 1 } })
  const burst = newIds(140)
  await scene.send('shop', burst)
  await until('all came', async () => (await receiver.count(path)).delivered === burst.length)
  await until('nothing waits', async () => (await worker.metric('sluice_waiting_messages')) === 0)
  const queued = await countRecords(`${scene.prefix}waiting`)
  const later = newIds(10)
  for (const [nth, id] of later.entries()) {
    await scene.send('shop', [id])
    await until('it came', async () => (await receiver.count(path)).delivered === burst.length + nth + 1)
  }
  expect(await lastArrived(receiver)).toEqual([...burst, ...later])
  expect(await countRecords(`${scene.prefix}waiting`)).toBe(queued)
})

test('a burst that comes while others wait is sent behind them', async () => {
  const { scene, receiver } = await tryOn({ maxInFlight: 1, rateLimit: { perSecond: 30, burst: 1 } })
  const ids: string[] = []
  for (let burst = 1; burst <= 4; burst++) {
    const more = newIds(60)
    ids.push(...more)
    await scene.send('shop', more)
    await until('some came', async () => (await receiver.count(path)).delivered >= burst * 20)
  }
  await until('all came', async () => (await receiver.count(path)).delivered === ids.length)
  expect(await lastArrived(receiver)).toEqual(ids)
  expect(await receiver.count(path)).toMatchObject({ repeats: 0 })
})

test('a destination that is paused while it fails gets no retries, and all of them when it is resumed', async () => {
  const ladder = { SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s' }
  const { scene, receiver, worker, catalogOf } = await tryOn({}, ladder)
  await receiver.behave(path, { status: 500 })
  const ids = newIds(20)
  await scene.send('shop', ids)
  await until('all have failed', async () => (await receiver.count(path)).distinct === ids.length)
  await worker.untilLogged('the catalog has changed', () =>
    scene.catalog.rewrite(catalogOf({ state: 'paused' })),
  )
  const queue = `${scene.prefix}waiting`
  await until('the retries wait in the queue', async () => (await countRecords(queue)) >= ids.length)
  const { requests } = await receiver.count(path)
  await receiver.behave(path, {})
  await scene.send('shop', newIds(1))
  await until('a new one waits too', async () => (await countRecords(queue)) > ids.length)
  expect((await receiver.count(path)).requests).toBe(requests)
  scene.catalog.rewrite(catalogOf({}))
  await until('all came', async () => (await receiver.count(path)).delivered === ids.length + 1)
})

test('what waits while no worker runs is sent after the start, in its order', async () => {
  const { scene, receiver, worker, catalogOf } = await tryOn(
    { maxInFlight: 1, state: 'paused' },
    { SLUICE_KAFKA_SESSION_TIMEOUT: '6s' },
  )
  const ids = newIds(80)
  await scene.send('shop', ids)
  const waiting = (): Promise<number> => worker.metric('sluice_waiting_messages')
  await until('all wait', async () => (await waiting()) === ids.length)
  await worker.kill()
  scene.catalog.rewrite(catalogOf({ maxInFlight: 1 }))
  const later = newIds(20)
  await scene.send('shop', later)
  const next = await startSluice(scene.variables)
  onTestFinished(() => next.kill())
  const all = [...ids, ...later]
  await until('all came', async () => (await receiver.count(path)).distinct === all.length, {
    timeoutMs: 90_000,
  })
  expect(await lastArrived(receiver)).toEqual(all)
  expect(await receiver.count(path)).toMatchObject({ repeats: 0 })
})
