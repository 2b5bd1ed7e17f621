import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { newIds, setScene } from '../e2e/scene.ts'
import { ChangingGroup } from '../support/changing-group.ts'
import { type EarlierVersion, takeEarlierVersion } from '../support/earlier-version.ts'
import { answer, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { type CatalogData, type SluiceProcess, startSluice, writeCatalog } from '../support/worker-process.ts'

// Upgrades to a version with mappings, as docs/operations.md says, and why it says so.

/** The last version that knows conditions, and no mappings. */
const withoutMappings = 'bf899a810424011d2bb6afbfb804f3f328de7696'
const workers = 2

let old: EarlierVersion

beforeAll(async () => {
  old = await takeEarlierVersion(withoutMappings)
})

afterAll(() => old?.remove())

/** An installation with one destination, whose endpoint answers 503 until it is mended. */
async function install() {
  const state = { isDown: true }
  const receiver = await startReceiver((...of) => answer(state.isDown ? 503 : 200)(...of))
  onTestFinished(() => receiver.stop())
  const catalogOf = (rest: object = {}): CatalogData => ({
    sources: [{ id: 'shop' }],
    destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: `${receiver.origin}/crm` }], ...rest }],
  })
  const mapped = catalogOf({ mappings: [{ body: { mapped: { '@path': '$.messageId' } } }] })
  const scene = await setScene({
    catalog: catalogOf(),
    variables: {
      SLUICE_RETRY_LADDER: '5s',
      SLUICE_RETRY_THEN: '5s',
      SLUICE_REPEATS_WINDOW: '0s',
      SLUICE_LOG_ATTEMPTS: 'false',
    },
  })
  onTestFinished(() => scene.close())
  const processes: SluiceProcess[] = []
  const group = new ChangingGroup({
    async start(_name, program) {
      const how = { readyMs: 60_000, ...(program !== undefined && { program }) }
      const started = await startSluice(scene.variables, how)
      processes.push(started)
      return started
    },
  })
  onTestFinished(() => group.destroy())
  return {
    scene,
    group,
    processes,
    catalogOf,
    mapped,
    mend: () => {
      state.isDown = false
    },
    bodies: () => receiver.requests.map(({ body }) => body.toString()),
    send: async (count: number): Promise<string[]> => {
      const ids = newIds(count)
      await scene.send('shop', ids)
      return ids
    },
  }
}

function mappedBody(id: string): string {
  return JSON.stringify({ mapped: id })
}

test('all workers are updated before a destination has mappings: what was tried before is sent as it was, and what comes later by the mapping', async () => {
  const { scene, group, mapped, mend, bodies, send } = await install()
  for (let count = 0; count < workers; count++) await group.join(old.program)
  const early = await send(20)
  const triedBy = (id: string): string[] => bodies().filter((body) => body.includes(`"messageId":"${id}"`))
  await until('all were tried', () => early.every((id) => triedBy(id).length > 0))
  for (let count = 0; count < workers; count++) await group.replace(0)
  scene.catalog.rewrite(mapped)
  const late: string[] = []
  // Until the other worker has the mapping too, it sends messages as they are.
  const mappedId = await until('the mapping is in force', async () => {
    late.push(...(await send(1)))
    return late.find((id) => bodies().includes(mappedBody(id)))
  })
  const before = bodies().length
  mend()
  await until('all have arrived', async () => (await scene.lag()) === 0, { timeoutMs: 120_000 })
  const since = bodies().slice(before)
  for (const id of early) {
    expect(since).toContain(triedBy(id)[0])
    expect(new Set(triedBy(id)).size).toBe(1)
    expect(bodies()).not.toContain(mappedBody(id))
  }
  expect(since).toContain(mappedBody(mappedId))
  group.refuseLosses()
})

test('a worker of the earlier version does not start with mappings, and one that runs refuses them and sends messages as they are', async () => {
  const { scene, group, processes, mapped, mend, bodies, send } = await install()
  const file = writeCatalog(mapped)
  onTestFinished(() => file.remove())
  const variables = { ...scene.variables, SLUICE_CATALOG_FILE: file.path }
  await expect(startSluice(variables, { program: old.program })).rejects.toThrow(/mappings/)
  await group.join(old.program)
  mend()
  scene.catalog.rewrite(mapped)
  const [running] = processes
  await until('it refuses them', async () => (await running?.metric('sluice_catalog_refused')) === 1)
  const [id = ''] = await send(1)
  await until('it came', () => bodies().some((body) => body.includes(`"messageId":"${id}"`)))
  expect(bodies()).not.toContain(mappedBody(id))
})

test('without the mappings, and with its destination off, workers go back, and no message is sent in another shape', async () => {
  const { scene, group, catalogOf, mapped, mend, bodies, send } = await install()
  scene.catalog.rewrite(mapped)
  for (let count = 0; count < workers; count++) await group.join()
  const ids = await send(10)
  await until('all were tried', () => ids.every((id) => bodies().includes(mappedBody(id))))
  scene.catalog.rewrite(catalogOf({ state: 'off' }))
  await until('nothing waits for a retry', async () => (await scene.lag()) === 0, { timeoutMs: 60_000 })
  for (let count = 0; count < workers; count++) await group.replace(0, old.program)
  mend()
  scene.catalog.rewrite(catalogOf())
  const late: string[] = []
  await until('later messages come as they are', async () => {
    late.push(...(await send(1)))
    return bodies().some((body) => late.some((id) => body.includes(`"messageId":"${id}"`)))
  })
  expect(bodies().filter((body) => ids.some((id) => body.includes(`"messageId":"${id}"`)))).toEqual([])
})
