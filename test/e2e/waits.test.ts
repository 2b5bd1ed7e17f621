import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readAll } from '../support/kafka.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { type CatalogData, runToEnd, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { newIds, type Scene, setScene } from './scene.ts'

/** Who waits, and how long: what operators see of it, and how they give it up. All tests share a deployment. */

let receiver: Receiver
let scene: Scene
let worker: SluiceProcess
let index: SluiceProcess
let folder: string

const held = newIds(40)
const failing = newIds(7)
/** So many that some wait during all of these tests, on a slow machine too. */
const slow = newIds(1_500)

function catalogOf(state: 'on' | 'paused'): CatalogData {
  const hooks = [{ url: `${receiver.origin}/takes` }]
  return {
    sources: ['shop', 'till', 'web'].map((id) => ({ id })),
    destinations: [
      { id: 'held', sources: ['shop'], hooks, state },
      { id: 'down', sources: ['till'], hooks: [{ url: `${receiver.origin}/fails` }] },
      { id: 'slow', sources: ['web'], hooks, rateLimit: { perSecond: 5 } },
      { id: 'idle', sources: ['web'], hooks, filter: { types: ['page'] } },
    ],
  }
}

beforeAll(async () => {
  receiver = await startReceiver({ '/takes': answer(200), '/fails': answer(500) })
  folder = mkdtempSync(join(tmpdir(), 'sluice-index-'))
  scene = await setScene({
    catalog: catalogOf('paused'),
    variables: {
      SLUICE_REPEATS_WINDOW: '0s',
      SLUICE_RETRY_LADDER: '10m',
      SLUICE_RETRY_THEN: '10m',
      SLUICE_INDEX_FOLDER: folder,
    },
  })
  worker = await startSluice(scene.variables)
  index = await startSluice(scene.variables, { role: 'log serve' })
  await scene.send('shop', held)
  await scene.send('till', failing)
  await scene.send('web', slow)
})

afterAll(async () => {
  await Promise.all([worker?.kill(), index?.kill()])
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  await receiver?.stop()
  scene?.close()
})

type Listed = { readonly id: string; readonly health: Readonly<Record<string, unknown>> }

async function run(...args: readonly string[]): ReturnType<typeof runToEnd> {
  return runToEnd(args, scene.variables)
}

async function find(id: string | undefined): Promise<string> {
  return (await run('log', 'find', id ?? '')).stdout
}

async function listed(): Promise<ReadonlyMap<string, Listed['health']>> {
  const { stdout } = await run('destinations', 'list', '--json')
  const all: Listed[] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return new Map(all.map(({ id, health }) => [id, health]))
}

test('the list says how many messages wait, since when, and how long it takes, and 0 only if it is known', async () => {
  const health = await until('all is told', async () => {
    const now = await listed()
    const { drainedInSeconds, perSecondLimit } = now.get('slow') ?? {}
    // While the processes join, one of them may tell the part that it had before.
    const areRetriesTold =
      now.get('down')?.['retrying'] === failing.length && now.get('slow')?.['retrying'] === 0
    const isTold = typeof drainedInSeconds === 'number' && perSecondLimit === 5 && areRetriesTold
    return now.get('held')?.['waiting'] === held.length && isTold ? now : undefined
  })
  const of = (id: string) => health.get(id)
  expect(of('held')).toMatchObject({ drainedInSeconds: null, isLimitLowered: null })
  expect(of('held')?.['oldestWaitingSince']).toMatch(/^20/)
  expect(of('idle')).toMatchObject({ waiting: 0, drainedInSeconds: 0, oldestWaitingSince: null })
  // What has failed and waits for its next try isn't waiting for its turn.
  expect(of('down')).toMatchObject({ waiting: 0 })
  const { waiting, drainedInSeconds } = of('slow') ?? {}
  expect(Number(drainedInSeconds)).toBeGreaterThan(Number(waiting) / 5 / 2)
  // Each command reads anew what workers tell, and one of them may tell late.
  const ofSlow = /slow +on +paced +\d+ +\d+ [sm] +\d+ [sm] +0 +5\/s/
  const ofDown = new RegExp(`down +on +failing +0 +${failing.length} `)
  const stdout = await until('the table tells all', async () => {
    const table = (await run('destinations', 'list')).stdout
    return ofDown.test(table) && ofSlow.test(table) && table
  })
  expect(stdout).toMatch(/held +paused +paused +40 +\d+ [sm]/)
  expect(stdout).toContain('what waits, as of 20')
})

test('a message that waits says how long at most, and one that has failed when its next try is', async () => {
  await until('the last one waits', async () =>
    /slow: waits for its turn, at most about \d+ [sm]/.test(await find(slow.at(-1))),
  )
  await until('one has failed', async () =>
    /down: next try at 20\S+Z, rung 10 m/.test(await find(failing[0])),
  )
  // Nobody knows how long a destination stays paused.
  expect(await find(held[0])).toContain('held: waits for its turn\n')
})

test('what waits is given up only if somebody says so, becomes dead letters, and is in the audit', async () => {
  const drop = ['destinations', 'drop', 'held']
  expect(await run(...drop)).toMatchObject({ code: 2 })
  const asked = await run(...drop, '--waiting')
  expect(asked).toMatchObject({ code: 2 })
  expect(asked.stderr).toContain('--yes')
  const preview = await run(...drop, '--waiting', '--dry-run', '--json')
  expect(JSON.parse(preview.stdout)).toMatchObject({ destination: 'held', waiting: 40, isPreview: true })
  expect(await run(...drop, '--waiting', '--yes', '--by', 'ann')).toMatchObject({ code: 0 })
  const letters = await until('all are dead letters', async () => {
    const all = await readAll(`${scene.prefix}dead-letters`)
    return all.length >= held.length ? all : undefined
  })
  expect(new Set(letters.map(({ headers }) => headers['reason']))).toEqual(new Set(['dropped']))
  expect(new Set(letters.map(({ headers }) => headers['message-id']))).toEqual(new Set(held))
  await until('nothing waits any more', async () => (await listed()).get('held')?.['waiting'] === 0)
  const audit = (await readAll(`${scene.prefix}replay-jobs`)).map(({ value }) => JSON.parse(String(value)))
  expect(audit).toMatchObject([{ action: 'destination_dropped', destination: 'held', by: 'ann' }])
  // The next message waits again.
  await scene.send('shop', newIds(1))
  await until('it waits', async () => (await listed()).get('held')?.['waiting'] === 1)
})

test('a replay says how many of its messages wait, and is done only when none does', async () => {
  const replay = async (...args: readonly string[]) => {
    const { stdout } = await run('replay', ...args, '--json')
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  }
  const args = ['dead-letters', '--destination', 'held', '--reason', 'dropped', '--detach']
  const { id } = await replay(...args)
  const job = await until('all are handed over, and it knows that they wait', async () => {
    const now = await replay('show', id)
    return now.state === 'delivering' && now.waiting === held.length ? now : undefined
  })
  expect(job).toMatchObject({ sent: { records: held.length } })
  expect((await run('replay', 'show', id)).stdout).toContain(`at most ${held.length} still wait`)
  scene.catalog.rewrite(catalogOf('on'))
  await until('it is done', async () => (await replay('show', id)).state === 'done')
  const came = receiver.requestsTo('/takes').map(({ body }) => JSON.parse(String(body)).messageId)
  expect(came).toEqual(expect.arrayContaining(held))
  expect(await replay('show', id)).toMatchObject({ waiting: 0 })
})

test('what waits on the retry topics is given up too, though its endpoint does not work', async () => {
  await until('all have failed', async () => {
    return (await readAll(`${scene.prefix}retry.10m`)).length >= failing.length
  })
  expect(await run('destinations', 'drop', 'down', '--waiting', '--yes')).toMatchObject({ code: 0 })
  await until('all are dead letters', async () => {
    const all = await readAll(`${scene.prefix}dead-letters`)
    const ids = new Set(all.map(({ headers }) => headers['message-id']))
    return failing.every((id) => ids.has(id))
  })
})
