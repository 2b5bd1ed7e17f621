import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { newIds, type Scene, setScene } from '../e2e/scene.ts'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { ChangingGroup } from '../support/changing-group.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { type EarlierVersion, takeEarlierVersion } from '../support/earlier-version.ts'
import { groupLag } from '../support/group-lag.ts'
import { otherProgram, testKafka } from '../support/kafka.ts'
import type { SluiceProcess } from '../support/sluice-process.ts'
import { until } from '../support/until.ts'
import { type CatalogData, startSluice } from '../support/worker-process.ts'

/** The last version without queues of destinations. What waits for its turn is on its retry topics. */
const withoutQueues = 'b04d60cc70f59ea08f8d2a5ba95ad8e9c0280463'
const perSecond = 20
const burst = 400
const workers = 2
const path = '/limited'

let old: EarlierVersion

beforeAll(async () => {
  old = await takeEarlierVersion(withoutQueues)
})

afterAll(() => old?.remove())

/** An installation whose only destination has a rate limit that each burst exceeds. */
type Installation = {
  scene: Scene
  receiver: CountingReceiver
  group: ChangingGroup
  /** The processes that run, or have run. */
  started: readonly SluiceProcess[]
  /** The settings that only workers of this version get. */
  newSettings: Record<string, string>
  /** Sets the destination `on`. */
  resume: () => void
  send: () => Promise<string[]>
  /** Resolves with how many of the messages have not arrived. */
  missing: (ids: readonly string[]) => Promise<number>
  /** Replaces the workers one by one. */
  replaceAll: (program?: string) => Promise<void>
}

async function install(state: 'on' | 'paused'): Promise<Installation> {
  const receiver = await startCountingReceiver()
  onTestFinished(() => receiver.stop())
  const catalogOf = (present: 'on' | 'paused'): CatalogData => ({
    sources: [{ id: 'shop' }],
    destinations: [
      {
        id: 'limited',
        sources: ['shop'],
        state: present,
        rateLimit: { perSecond },
        // So that a worker holds few messages in memory, and the others wait in the queue.
        maxInFlight: 10,
        hooks: [{ url: receiver.url(path) }],
      },
    ],
  })
  const scene = await setScene({
    catalog: catalogOf(state),
    variables: {
      // So long that records of the earlier version are still there when its last worker has ended.
      SLUICE_RETRY_LADDER: '40s',
      SLUICE_RETRY_THEN: '40s',
      SLUICE_REPEATS_WINDOW: '0s',
      SLUICE_LOG_ATTEMPTS: 'false',
    },
  })
  onTestFinished(() => scene.close())
  const newSettings: Record<string, string> = {}
  const started: SluiceProcess[] = []
  const group = new ChangingGroup({
    async start(_name, program) {
      const own = program === undefined ? newSettings : {}
      const worker = await startSluice(
        { ...scene.variables, ...own },
        { readyMs: 60_000, ...(program !== undefined && { program }) },
      )
      started.push(worker)
      return worker
    },
  })
  onTestFinished(() => group.destroy())
  return {
    scene,
    receiver,
    group,
    started,
    newSettings,
    resume: () => scene.catalog.rewrite(catalogOf('on')),
    async send() {
      const ids = newIds(burst)
      await scene.send('shop', ids)
      return ids
    },
    async missing(ids) {
      const arrived = await receiver.arrivals(path)
      return ids.filter((id) => !arrived.has(id)).length
    },
    async replaceAll(program) {
      for (let count = 0; count < workers; count++) await group.replace(0, program)
    },
  }
}

/** Resolves when all messages have arrived and all records are settled. None may have come twice. */
async function untilDelivered(
  { missing, scene, receiver, group }: Installation,
  ids: readonly string[],
): Promise<void> {
  await until('all have arrived', async () => (await missing(ids)) === 0, {
    timeoutMs: 240_000,
    everyMs: 500,
  })
  await until('all is committed', async () => (await scene.lag()) === 0, { timeoutMs: 120_000 })
  expect((await receiver.count(path)).requests).toBe(ids.length)
  group.refuseLosses()
}

/** Returns how many messages wait in the queues of all workers that run. */
async function waiting({ started }: Installation): Promise<number> {
  const running = started.filter(({ isRunning }) => isRunning)
  const counts = await Promise.all(running.map((worker) => worker.metric('sluice_waiting_messages')))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Returns how many records of the retry topics nobody has settled. */
function parked({ scene: { prefix } }: Installation): Promise<number> {
  return withAdmin(otherProgram(testKafka()), (admin) => groupLag(admin, `${prefix}group`, `${prefix}retry.`))
}

test('workers without queues are upgraded one by one during bursts: what they have put on the retry topics is delivered too, and nothing twice', async () => {
  const installation = await install('on')
  const { group, send, replaceAll } = installation
  for (let count = 0; count < workers; count++) await group.join(old.program)
  const ids = await send()
  await until('the rest of the burst is on the retry topics', async () => (await parked(installation)) > 200)
  const mixed = await group.replace(0)
  expect(mixed).toBe(`w${workers + 1}`)
  ids.push(...(await send()))
  await until('messages wait in the queues of the new worker', async () => (await waiting(installation)) > 50)
  await replaceAll()
  expect(await parked(installation)).toBeGreaterThan(0)
  ids.push(...(await send()))
  await untilDelivered(installation, ids)
})

test('with delivery.waitingQueues=false the queues run empty, and workers go back to a version without queues: nothing is lost, and nothing comes twice', async () => {
  const installation = await install('paused')
  const { group, send, replaceAll, newSettings, resume } = installation
  for (let count = 0; count < workers; count++) await group.join()
  const ids = await send()
  await until('they wait in the queue', async () => (await waiting(installation)) === burst, {
    timeoutMs: 60_000,
  })
  newSettings['SLUICE_DELIVERY_WAITING_QUEUES'] = 'false'
  await replaceAll()
  expect(await waiting(installation)).toBe(burst)
  resume()
  await until('the queues are empty', async () => (await waiting(installation)) === 0, { timeoutMs: 120_000 })
  ids.push(...(await send()))
  const isParked = async (): Promise<boolean> => (await parked(installation)) > 50
  await until('the rest of the burst is on the retry topics', isParked, { timeoutMs: 60_000 })
  expect(await waiting(installation)).toBe(0)
  await replaceAll(old.program)
  await untilDelivered(installation, ids)
})

test('workers that go back to a version without queues too early leave in the queues what waits there, and the next upgrade delivers it once', async () => {
  const installation = await install('paused')
  const { group, send, replaceAll, missing, resume } = installation
  for (let count = 0; count < workers; count++) await group.join()
  const early = await send()
  await until('they wait in the queue', async () => (await waiting(installation)) === burst, {
    timeoutMs: 60_000,
  })
  await replaceAll(old.program)
  resume()
  const late = await send()
  await until('the later messages have arrived', async () => (await missing(late)) === 0, {
    timeoutMs: 240_000,
    everyMs: 500,
  })
  expect(await missing(early)).toBe(burst)
  await replaceAll()
  await untilDelivered(installation, [...early, ...late])
})
