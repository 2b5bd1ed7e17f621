import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { newIds, setScene } from '../e2e/scene.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { type Kfake, startKfake } from '../support/kfake.ts'
import { until } from '../support/until.ts'
import { runSluice, type SluiceProcess, startSluice } from '../support/worker-process.ts'

/**
 * Tests of Sluice with a cluster that doesn't run Apache Kafka. The cluster has another implementation of the
 * protocol, and another group coordinator.
 */

let kafka: Kfake
let receiver: CountingReceiver

beforeAll(async () => {
  kafka = await startKfake()
  receiver = await startCountingReceiver()
}, 600_000)

afterAll(async () => {
  await receiver.stop()
  await kafka.stop()
})

test('messages, retries, a killed worker, audiences, the gateway and replays work', async () => {
  await receiver.behave('/flaky', { failFirstOfEvery: 5 })
  const scene = await setScene({
    brokers: kafka.brokers,
    catalog: {
      sources: [
        { id: 'shop', writeKeys: ['wk_shop_0123456789'] },
        { id: 'space', kind: 'audiences' },
      ],
      destinations: [
        { id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url('/crm') }] },
        { id: 'flaky', sources: ['shop'], hooks: [{ url: receiver.url('/flaky') }] },
        { id: 'members', sources: ['space'], hooks: [{ url: receiver.url('/members') }] },
      ],
    },
    variables: { SLUICE_RETRY_LADDER: '2s,4s', SLUICE_RETRY_THEN: '4s' },
  })
  onTestFinished(() => scene.close())
  async function start(role = 'worker'): Promise<SluiceProcess> {
    const started = await startSluice(scene.variables, { role })
    onTestFinished(() => started.kill())
    return started
  }
  const delivered = async (path: string): Promise<number> => (await receiver.count(path)).delivered
  const worker = await start()
  const killed = await start()
  const ids = newIds(3_000)
  await scene.send('shop', ids)
  await until('both deliver', () =>
    [worker, killed].every(({ log }) => log.some(({ msg }) => msg === 'attempt')),
  )
  await killed.kill()
  await until('all is delivered, also after retries', async () => {
    const counts = await Promise.all([delivered('/crm'), delivered('/flaky')])
    return counts.every((count) => count === ids.length)
  })
  await until('the group has committed all', async () => (await scene.lag()) === 0)

  const change = ['--space', 'space', '--audience', 'aud_1', '--name', 'Big spenders', '--user', 'u1']
  await runSluice(['audience', 'change', ...change, '--member', 'true'], scene.variables)
  await until('the Identify arrives', async () => (await delivered('/members')) === 1)

  const gateway = await start('gateway')
  const response = await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('wk_shop_0123456789:')}` },
    body: JSON.stringify({ userId: 'u2', event: 'Order Completed' }),
  })
  expect(response.status).toBe(200)
  await until('the call is delivered', async () => (await delivered('/crm')) === ids.length + 1)

  const replay = ['replay', 'events', '--destination', 'crm', '--source', 'shop', '--rate', '10000']
  const { stdout } = await runSluice(replay, scene.variables)
  expect(stdout).toContain('3,001 records sent again')
  await until('all arrives again', async () => {
    const { requests } = await receiver.count('/crm')
    return requests >= 2 * (ids.length + 1)
  })
  expect((await worker.wholeLog()).filter(({ level }) => level === 'error')).toEqual([])
})
