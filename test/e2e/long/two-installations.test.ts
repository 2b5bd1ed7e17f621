import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import { until } from '../../support/until.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../../support/worker-process.ts'
import { newIds, type Scene, setShopScene } from '../scene.ts'

let receiver: CountingReceiver

beforeEach(async () => {
  receiver = await startCountingReceiver()
})

afterEach(() => receiver.stop())

/** Opens a scene that sets no consumer group. */
async function install(path: string): Promise<Scene> {
  const scene = await setShopScene(receiver.url(path), { SLUICE_REPEATS_WINDOW: '0s' })
  delete scene.variables['SLUICE_KAFKA_GROUP_ID']
  return scene
}

async function start(variables: Record<string, string>): Promise<SluiceProcess> {
  const worker = await startSluice(variables)
  onTestFinished(async () => {
    if (worker.isRunning) await worker.kill()
  })
  return worker
}

/** Sends 60 messages and waits until all have arrived. */
async function deliver(scene: Scene, path: string): Promise<void> {
  const ids = newIds(60)
  await scene.send('shop', ids)
  await until('all have arrived', async () => {
    const arrivals = await receiver.arrivals(path)
    return ids.every((id) => arrivals.has(id))
  })
}

test('two installations of one cluster that set no group deliver each their own', async () => {
  const [one, two] = [await install('/one'), await install('/two')]
  await Promise.all([start(one.variables), start(two.variables)])
  await Promise.all([deliver(one, '/one'), deliver(two, '/two')])
  const [ones, twos] = [await receiver.count('/one'), await receiver.count('/two')]
  expect([ones.requests, twos.requests]).toEqual([60, 60])
})

test('an installation that was in the group of all goes on in its own where it stopped, and not before the others have left', async () => {
  const scene = await install('/crm')
  const before = await start({ ...scene.variables, SLUICE_KAFKA_GROUP_ID: 'sluice' })
  await deliver(scene, '/crm')

  const refused = await runToEnd(['worker'], scene.variables)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain('Workers still read these topics in the consumer group sluice')
  await before.terminate()

  const after = await start(scene.variables)
  await deliver(scene, '/crm')
  expect(await receiver.count('/crm')).toMatchObject({ requests: 120, distinct: 120, repeats: 0 })
  expect(after.log.find(({ from }) => from === 'sluice')).toMatchObject({
    groupId: `${scene.prefix}workers`,
    msg: expect.stringContaining('which was the default for every topic prefix before'),
  })
})
