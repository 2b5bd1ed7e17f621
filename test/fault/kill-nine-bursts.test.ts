import { expect, test } from 'vitest'
import { newIds, type Scene, setScene } from '../e2e/scene.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import type { SluiceProcess } from '../support/sluice-process.ts'
import { until } from '../support/until.ts'
import { type CatalogData, startSluice } from '../support/worker-process.ts'

const kills = 20
const burst = 400
/** The number of messages of `slow` between two kills. The last kill comes well before their end. */
const messagesBetweenKills = 300
/** The number of messages that wait in queues before each kill. */
const leastWaiting = 100
/** What each destination takes within a second, from all workers together. */
const perSecond = { limited: 60, slow: 80 }
const slowMs = 400
const workers = 2
/** `limited` is paused at the first kill of so many, and is on again before the third. */
const pauseEvery = 4

/** Marks are written once a second. On a busy machine, a write takes up to a further second. */
const busyFactor = 2

type Path = '/limited' | '/slow'
const paths: readonly Path[] = ['/limited', '/slow']

test('workers that are killed twenty times while bursts wait in queues lose nothing, and a kill repeats at most what is delivered in a second', async () => {
  const receiver = await startCountingReceiver()
  await receiver.behave('/slow', { delayMs: slowMs })
  const scene = await setScene({
    catalog: catalogOf(receiver, 'on'),
    variables: { SLUICE_REPEATS_WINDOW: '0s', SLUICE_LOG_ATTEMPTS: 'false' },
  })
  const group = await Promise.all(Array.from({ length: workers }, () => startSluice(scene.variables)))
  try {
    const ids: string[] = []
    const repeated: Record<Path, number>[] = []
    for (let kill = 1; kill <= kills; kill++) {
      const [victim] = group
      if (victim === undefined) throw new Error('no worker is left')
      if (kill % pauseEvery === 1) scene.catalog.rewrite(catalogOf(receiver, 'paused'))
      if (kill % pauseEvery === 3) scene.catalog.rewrite(catalogOf(receiver, 'on'))
      ids.push(...(await send(scene)))
      await until('queues are there', async () => (await waitingOf(group)) >= leastWaiting)
      const killed = receiver.kill('/slow', {
        pid: victim.pid,
        distinct: kill * messagesBetweenKills,
        inFlight: 1,
      })
      await until('it is killed', () => !victim.isRunning, { timeoutMs: 120_000 })
      await killed
      repeated.push(await repeatsOf(receiver))
      group.splice(0, 1)
      group.push(await startSluice(scene.variables, { readyMs: 60_000 }))
    }
    scene.catalog.rewrite(catalogOf(receiver, 'on'))
    await until('all is delivered', async () => (await missing(receiver, ids)) === 0, {
      timeoutMs: 300_000,
      everyMs: 500,
    })
    await until('all is committed', async () => (await scene.lag()) === 0, { timeoutMs: 60_000 })
    repeated.push(await repeatsOf(receiver))
    const perKill = paths.map((path) =>
      repeated.slice(1).map((counts, index) => counts[path] - (repeated[index]?.[path] ?? 0)),
    )
    process.stdout.write(
      `${ids.length} messages for each destination, ${kills} kills; repeats after a success by kill: ` +
        `${paths.map((path, index) => `${path} ${perKill[index]?.join(' ')}`).join('; ')}\n`,
    )
    for (const path of paths) expect(new Set((await receiver.arrivals(path)).keys())).toEqual(new Set(ids))
    expect(repeated[0]).toEqual({ '/limited': 0, '/slow': 0 })
    for (const [index, most] of [perSecond.limited, perSecond.slow].entries()) {
      const counts = perKill[index] ?? []
      expect(counts.reduce((sum, count) => sum + count, 0) / kills).toBeLessThanOrEqual(most)
      expect(Math.max(...counts)).toBeLessThanOrEqual(busyFactor * most)
    }
  } finally {
    await Promise.all(group.map((worker) => worker.kill()))
    scene.close()
    await receiver.stop()
  }
})

function catalogOf(receiver: CountingReceiver, state: 'on' | 'paused'): CatalogData {
  return {
    sources: [{ id: 'shop' }],
    destinations: [
      {
        id: 'limited',
        sources: ['shop'],
        state,
        rateLimit: { perSecond: perSecond.limited },
        hooks: [{ url: receiver.url('/limited') }],
      },
      {
        id: 'slow',
        sources: ['shop'],
        maxInFlight: (perSecond.slow * slowMs) / 1_000 / workers,
        hooks: [{ url: receiver.url('/slow') }],
      },
    ],
  }
}

async function send(scene: Scene): Promise<string[]> {
  const ids = newIds(burst)
  await scene.send('shop', ids)
  return ids
}

/** Returns how many messages wait in the queues of these workers. */
async function waitingOf(group: readonly SluiceProcess[]): Promise<number> {
  const counts = await Promise.all(group.map((worker) => worker.metric('sluice_waiting_messages')))
  return counts.reduce((sum, count) => sum + count, 0)
}

async function repeatsOf(receiver: CountingReceiver): Promise<Record<Path, number>> {
  const [limited, slow] = await Promise.all(paths.map((path) => receiver.count(path)))
  return { '/limited': limited?.repeats ?? 0, '/slow': slow?.repeats ?? 0 }
}

/** Returns how many messages no endpoint has answered yet. */
async function missing(receiver: CountingReceiver, ids: readonly string[]): Promise<number> {
  const counts = await Promise.all(paths.map((path) => receiver.count(path)))
  return counts.reduce((sum, { delivered }) => sum + ids.length - delivered, 0)
}
