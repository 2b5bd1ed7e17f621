import { expect, onTestFinished, test } from 'vitest'
import { newIds, type Scene, setScene } from '../e2e/scene.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { countRecords } from '../support/kafka.ts'
import type { SluiceProcess } from '../support/sluice-process.ts'
import { until } from '../support/until.ts'
import { appendCopies, firstWaiting } from '../support/waiting-copies.ts'
import { type CatalogData, runToEnd, startSluice } from '../support/worker-process.ts'

/** A million messages wait for a paused destination: a growth takes them along, and takeovers hold nobody up. */

const count = 1_000_000
const partitions = 2
const grownTo = 5
/** The longest takeover of a million messages that have their marks. */
const takeoverMs = 10_000
/** The longest time from the start of a worker until it has delivered what waits for another destination. */
const othersMs = 10_000
const growMs = 900_000
const tookOver = 'took over the messages that wait for their turn'

function catalogOf(receiver: CountingReceiver): CatalogData {
  return {
    sources: [{ id: 'shop' }, { id: 'till' }],
    destinations: [
      { id: 'held', sources: ['shop'], state: 'paused', hooks: [{ url: receiver.url('/held') }] },
      { id: 'live', sources: ['till'], hooks: [{ url: receiver.url('/live') }] },
    ],
  }
}

function waitingAt(worker: SluiceProcess): Promise<number> {
  return worker.metric('sluice_waiting_messages')
}

/**
 * Starts a worker, and returns how long it took to take over the messages of a unit at most, and from its start until it
 * had delivered messages of `live`.
 */
async function takeOver({
  scene,
  receiver,
}: {
  scene: Scene
  receiver: CountingReceiver
}): Promise<{ worker: SluiceProcess; liveMs: number; tookMs: number }> {
  const ids = newIds(200)
  const before = (await receiver.count('/live')).distinct
  await scene.send('till', ids)
  const startedMs = performance.now()
  const worker = await startSluice(scene.variables, { readyMs: 300_000 })
  onTestFinished(async () => {
    if (worker.isRunning) await worker.kill()
  })
  await until(
    'the messages of the other destination came',
    async () => (await receiver.count('/live')).distinct >= before + ids.length,
    { timeoutMs: 120_000, everyMs: 50 },
  )
  const liveMs = performance.now() - startedMs
  await until('all are known', async () => (await waitingAt(worker)) === count + 1, { timeoutMs: 300_000 })
  const took = worker.log.flatMap(({ msg, tookMs }) => (msg === tookOver ? [Number(tookMs)] : []))
  return { worker, liveMs, tookMs: Math.max(...took) }
}

test('a growth takes along a million messages that wait, and takeovers of them hold up no other destination', async () => {
  const receiver = await startCountingReceiver()
  onTestFinished(() => receiver.stop())
  const scene = await setScene({
    catalog: catalogOf(receiver),
    variables: {
      SLUICE_REPEATS_WINDOW: '0s',
      SLUICE_LOG_ATTEMPTS: 'false',
      SLUICE_TOPICS_PARTITIONS: String(partitions),
    },
  })
  onTestFinished(() => scene.close())
  const topic = `${scene.prefix}waiting`
  const first = await startSluice(scene.variables)
  await scene.send('shop', newIds(1))
  const one = await firstWaiting(topic)
  await first.terminate()
  await appendCopies(topic, one, { count, partitions })

  const unmarked = await takeOver({ scene, receiver })
  await unmarked.worker.terminate()
  const marked = await takeOver({ scene, receiver })
  await marked.worker.terminate()
  const growing = performance.now()
  const grown = await runToEnd(['topics', 'grow', String(grownTo)], scene.variables, { killAfterMs: growMs })
  expect(grown).toMatchObject({ code: 0 })
  const growSeconds = (performance.now() - growing) / 1_000
  expect(await countRecords(`${scene.prefix}g2.waiting`)).toBe(count + 1)
  scene.variables['SLUICE_TOPICS_PARTITIONS'] = String(grownTo)
  scene.variables['SLUICE_TOPICS_GENERATION'] = '2'
  const afterwards = await takeOver({ scene, receiver })
  expect(await receiver.count('/held')).toMatchObject({ requests: 0 })
  process.stdout.write(
    `a million wait: taken over in ${seconds(unmarked.tookMs)} without marks, in ${seconds(marked.tookMs)} with them, and ` +
      `in ${seconds(afterwards.tookMs)} after the growth; others came ${seconds(unmarked.liveMs)}, ${seconds(marked.liveMs)} ` +
      `and ${seconds(afterwards.liveMs)} after the start; grown in ${growSeconds.toFixed(0)} s\n`,
  )
  expect(marked.tookMs).toBeLessThan(takeoverMs)
  expect(marked.liveMs).toBeLessThan(othersMs)
})

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
