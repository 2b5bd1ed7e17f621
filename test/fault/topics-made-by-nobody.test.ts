import { expect, onTestFinished, test } from 'vitest'
import { openShop, probe, troubleOf } from '../support/shop.ts'
import { startSingleBroker } from '../support/single-broker.ts'
import { until } from '../support/until.ts'
import { runToEnd, startSluice } from '../support/worker-process.ts'

/**
 * Starts a broker that creates a topic when a client asks for one that doesn't exist, as brokers do by
 * default. Returns its address.
 */
async function startObligingBroker(): Promise<string> {
  const properties = { 'auto.create.topics.enable': 'true' }
  const broker = await startSingleBroker({ extra: { listeners: [], properties } })
  onTestFinished(() => broker.stop())
  return broker.direct
}

test('of topics that are deleted while a worker and a gateway run, neither makes one again, nor does any command but `topics apply`', async () => {
  const shop = await openShop({
    brokers: [await startObligingBroker()],
    variables: { SLUICE_RETRY_LADDER: '3s', SLUICE_RETRY_THEN: '3s' },
  })
  const ladder = { SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s' }
  await shop.applyTopics(ladder)
  const worker = await shop.start({ variables: ladder })
  const gateway = await startSluice(shop.scene.variables, { role: 'gateway' })
  onTestFinished(() => gateway.kill())
  const topics = await shop.admin((admin) => admin.listTopics())
  const deleted = ['retry.3s', 'replays', 'dead-letters'].map((name) => shop.topic(name))
  await shop.admin((admin) => admin.deleteTopics({ topics: deleted }))
  await until('the worker has met it', () => troubleOf(worker, { topic: deleted[0] }).length > 0, {
    timeoutMs: 100_000,
  })
  await shop.untilArrived(await shop.send(0, 5))
  // These starts are refused, because topics are missing.
  expect((await runToEnd(['worker'], { ...shop.scene.variables, ...ladder })).code).toBe(1)
  expect((await runToEnd(['topics', 'check'], { ...shop.scene.variables, ...ladder })).code).toBe(1)
  const left = topics.filter((topic) => !deleted.includes(topic))
  expect((await shop.admin((admin) => admin.listTopics())).toSorted()).toEqual(left.toSorted())
  expect(await probe(worker, '/livez')).toMatchObject({ status: 200 })
})
