import { expect, test } from 'vitest'
import { joinsOf, openShop, probe, type Shop, troubleOf } from '../support/shop.ts'
import { otherProgram } from '../support/kafka.ts'
import { until } from '../support/until.ts'

const partitions = [0, 1, 2, 3, 4, 5]

async function sendEverywhere(shop: Shop, count: number): Promise<string[]> {
  return (await Promise.all(partitions.map((partition) => shop.send(partition, count)))).flat()
}

test('two installations that were given one group deliver each their own, and both say whom they meet until that is over', async () => {
  const [one, two] = [await openShop(), await openShop()]
  const groupId = one.scene.variables['SLUICE_KAFKA_GROUP_ID'] ?? ''
  const first = await one.start()
  const second = await two.start({ variables: { SLUICE_KAFKA_GROUP_ID: groupId }, isUnready: true })
  const ids = { one: await sendEverywhere(one, 20), two: await sendEverywhere(two, 20) }
  await one.untilArrived(ids.one)
  await two.untilArrived(ids.two)
  for (const [worker, foreign] of [
    [first, two.scene.prefix],
    [second, one.scene.prefix],
  ] as const) {
    const line = await until('it is told', () => troubleOf(worker, { groupId, level: 'error' })[0])
    expect(String(line['topics'])).toContain(foreign)
    const { status, text } = await probe(worker, '/readyz')
    expect(status).toBe(503)
    expect(text).toContain(groupId)
  }
  await second.terminate()
  await until('the first is ready again', async () => (await probe(first, '/readyz')).status === 200)
  await one.untilArrived(await sendEverywhere(one, 5))
})

test('a worker whose group is another program’s says so, and joins when that has left', async () => {
  const shop = await openShop()
  const groupId = shop.scene.variables['SLUICE_KAFKA_GROUP_ID'] ?? ''
  const foreign = otherProgram().consumer({ groupId })
  await foreign.connect()
  await foreign.subscribe({ topics: [shop.topic('backfills')] })
  await foreign.run({ eachMessage: async () => {} })
  await until('it is in the group', () =>
    shop.admin(async (admin) => (await admin.describeGroups([groupId])).groups[0]?.members.length === 1),
  )
  const worker = await shop.start({ isUnready: true })
  const ids = await sendEverywhere(shop, 5)
  const told = await until('it is told', () => troubleOf(worker, { groupId })[0])
  expect(told.msg).toBe(
    'another program is in the consumer group of this worker, which can not join: give each its own kafka.groupId; trying again',
  )
  expect((await probe(worker, '/readyz')).status).toBe(503)
  await foreign.disconnect()
  await shop.untilArrived(ids)
  await until('it is ready', async () => (await probe(worker, '/readyz')).status === 200)
})

test('while workers with another ladder replace those of before, every retry of either ladder is made', async () => {
  const shop = await openShop({ variables: { SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s' } })
  const ladder = { SLUICE_RETRY_LADDER: '2s', SLUICE_RETRY_THEN: '2s' }
  await shop.receiver.behave(shop.path, { failFirstOfEvery: 1 })
  const before = [await shop.start(), await shop.start()]
  await until('both have their share', () => before.every((worker) => joinsOf(worker) > 0))
  await shop.applyTopics(ladder)
  const after = await shop.start({ variables: ladder })
  const mixed = await sendEverywhere(shop, 20)
  await untilDelivered(shop, mixed)
  await before[0]?.terminate()
  await shop.start({ variables: ladder })
  const later = await sendEverywhere(shop, 20)
  await untilDelivered(shop, later)
  await before[1]?.terminate()
  await untilDelivered(shop, await sendEverywhere(shop, 20))
  expect(await after.metric('sluice_parked_total', { tier: '2s' })).toBeGreaterThan(0)
  await until('nothing is left', async () => (await shop.scene.lag()) === 0)
})

/** Waits until each message has arrived twice. The receiver refuses each message the first time. */
async function untilDelivered(shop: Shop, ids: readonly string[]): Promise<void> {
  await until('all are delivered at the second try', async () => {
    const arrivals = await shop.receiver.arrivals(shop.path)
    return ids.every((id) => (arrivals.get(id)?.length ?? 0) >= 2)
  })
}
