import { beforeEach, expect, test } from 'vitest'
import { newIds, type Scene, setScene } from '../e2e/scene.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { readAll } from '../support/kafka.ts'
import type { SluiceProcess } from '../support/sluice-process.ts'
import { until } from '../support/until.ts'
import { type CatalogData, runToEnd, startSluice } from '../support/worker-process.ts'

/** `sluice destinations drop ID --waiting`, while workers come and go, are killed, and somebody asks twice. */

const count = 3_000
/** `kept` waits beside `held`, in the same units. */
const paths = { held: '/held', kept: '/kept' }

let receiver: CountingReceiver
let scene: Scene
const workers: SluiceProcess[] = []

function destination(id: 'held' | 'kept', state: string) {
  return { id, sources: ['shop'], state, hooks: [{ url: receiver.url(paths[id]) }] }
}

function catalogOf(held: 'on' | 'paused', kept: 'on' | 'paused'): CatalogData {
  return {
    sources: [{ id: 'shop' }],
    destinations: [destination('held', held), destination('kept', kept)],
  }
}

beforeEach(async () => {
  receiver = await startCountingReceiver()
  scene = await setScene({
    catalog: catalogOf('paused', 'paused'),
    variables: { SLUICE_REPEATS_WINDOW: '0s', SLUICE_LOG_ATTEMPTS: 'false' },
  })
  return async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.kill()))
    await receiver.stop()
    scene.close()
  }
})

async function join(): Promise<SluiceProcess> {
  const worker = await startSluice(scene.variables, { readyMs: 60_000 })
  workers.push(worker)
  return worker
}

/** Sends messages that both destinations wait for, and waits until all of them are in the queues. */
async function fill(many = count): Promise<string[]> {
  const before = await waiting()
  const ids = newIds(many)
  await scene.send('shop', ids)
  await until('all wait', async () => (await waiting()) === before + 2 * many, { timeoutMs: 60_000 })
  return ids
}

/** Returns how many messages wait in the queues of the workers that run. */
async function waiting(): Promise<number> {
  const running = workers.filter(({ isRunning }) => isRunning)
  const counts = await Promise.all(running.map((worker) => worker.metric('sluice_waiting_messages')))
  return counts.reduce((sum, one) => sum + one, 0)
}

async function drop(id = 'held'): ReturnType<typeof runToEnd> {
  return runToEnd(['destinations', 'drop', id, '--waiting', '--yes'], scene.variables)
}

async function dropped(): Promise<string[]> {
  const letters = await readAll(`${scene.prefix}dead-letters`)
  expect(new Set(letters.map(({ headers }) => headers['destination-id']))).not.toContain('kept')
  return letters.map(({ headers }) => String(headers['message-id']))
}

/** Resolves with the dead letters once each of these messages is one. */
async function untilDropped(ids: readonly string[]): Promise<string[]> {
  return until(
    'each is a dead letter',
    async () => {
      const letters = await dropped()
      const distinct = new Set(letters)
      return ids.every((id) => distinct.has(id)) ? letters : undefined
    },
    { timeoutMs: 120_000, everyMs: 500 },
  )
}

/** Resolves when `kept` has all of its messages, each once, and nothing waits or is uncommitted any more. */
async function untilKeptCame(ids: readonly string[]): Promise<void> {
  scene.catalog.rewrite(catalogOf('on', 'on'))
  const came = async () => (await receiver.arrivals(paths.kept)).size
  await until('all of the other one came', async () => (await came()) >= ids.length, { timeoutMs: 60_000 })
  await until('all is committed', async () => (await scene.lag()) === 0, { timeoutMs: 60_000 })
  expect(await receiver.count(paths.kept)).toMatchObject({ requests: ids.length, distinct: ids.length })
}

test('a drop while units move to other workers reaches all that waited, each once', async () => {
  const first = await join()
  await join()
  const ids = await fill()
  const [given] = await Promise.all([drop(), join(), first.terminate()])
  expect(given).toMatchObject({ code: 0 })
  expect(await untilDropped(ids)).toHaveLength(count)
  await untilKeptCame(ids)
  expect(await receiver.count(paths.held)).toMatchObject({ requests: 0 })
})

test('two drops at once make one dead letter of each message, and later messages wait', async () => {
  await Promise.all([join(), join()])
  const ids = await fill()
  const given = await Promise.all([drop(), drop()])
  expect(given.map(({ code }) => code)).toEqual([0, 0])
  expect(await untilDropped(ids)).toHaveLength(count)
  const later = newIds(100)
  const before = await waiting()
  await scene.send('shop', later)
  await until('the later ones wait', async () => (await waiting()) === before + 2 * later.length)
  await untilKeptCame([...ids, ...later])
  await until('the later ones came', async () => (await receiver.arrivals(paths.held)).size === later.length)
  expect(new Set((await receiver.arrivals(paths.held)).keys())).toEqual(new Set(later))
  expect(await dropped()).toHaveLength(count)
})

test('a message whose destination is resumed while it is dropped is either delivered or a dead letter, once', async () => {
  await Promise.all([join(), join()])
  const ids = await fill()
  const asked = drop()
  scene.catalog.rewrite(catalogOf('on', 'paused'))
  expect(await asked).toMatchObject({ code: 0 })
  const ends = async () => [...(await receiver.arrivals(paths.held)).keys(), ...(await dropped())]
  await until('each has ended', async () => new Set(await ends()).size >= count, { timeoutMs: 60_000 })
  await untilKeptCame(ids)
  expect((await ends()).toSorted()).toEqual(ids.toSorted())
  expect(await receiver.count(paths.held)).toMatchObject({ repeats: 0 })
})

test.each([
  ['another worker gets its units', 2],
  ['it starts again', 1],
])(
  'a worker that is killed in the middle of a drop loses nothing, and %s: all that waited is dropped, and nothing is sent',
  async (_what, others) => {
    const victim = await join()
    if (others > 1) await join()
    const ids = await fill()
    expect(await drop()).toMatchObject({ code: 0 })
    await until('some are dead letters', async () => (await dropped()).length > 0, { everyMs: 20 })
    await victim.kill()
    if (others === 1) await join()
    const letters = await untilDropped(ids)
    process.stdout.write(`${letters.length - count} of ${count} dead letters were written twice\n`)
    await untilKeptCame(ids)
    expect(await receiver.count(paths.held)).toMatchObject({ requests: 0 })
  },
)

test('a destination that does not exist is refused, and the queues stay as they are', async () => {
  await join()
  await fill(50)
  expect(await drop('nobody')).toMatchObject({ code: 2 })
  expect(await waiting()).toBe(100)
  expect(await dropped()).toEqual([])
})
