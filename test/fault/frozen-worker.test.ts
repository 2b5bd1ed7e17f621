import { expect, onTestFinished, test } from 'vitest'
import { newIds, setScene, unhurried } from '../e2e/scene.ts'
import { keyOf, startDeliveryBook } from '../support/delivery-book.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'

const joinsOf = ({ log }: SluiceProcess) => log.filter(({ msg }) => msg === 'joined the group').length

test('a worker that wakes up when others have its partitions has nobody repeat what they have delivered', async () => {
  const book = await startDeliveryBook({ crm: { least: 0, most: 0 }, mail: { least: 400, most: 400 } })
  onTestFinished(() => book.stop())
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: ['crm', 'mail'].map((id) => ({
        id,
        sources: ['shop'],
        // `mail` takes one request at a time. So all messages except the first still wait for their turn at
        // `mail` when all have arrived at `crm`.
        maxInFlight: id === 'mail' ? 1 : 200,
        hooks: [{ url: book.url(id), headers: { 'X-Worker': '${CATALOG_WORKER}' } }],
      })),
    },
    variables: {
      ...unhurried,
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_DELIVERY_TIMEOUT: '30s',
    },
  })
  onTestFinished(() => scene.close())
  const start = async (name: string) => {
    const worker = await startSluice({ ...scene.variables, CATALOG_WORKER: name })
    onTestFinished(() => worker.kill())
    return worker
  }
  const ids = newIds(30)
  const deliveriesBy = (worker: string, destination: string) =>
    ids.map((id) =>
      (book.deliveries.get(keyOf(destination, id)) ?? []).filter((one) => one.worker === worker),
    )
  const hasDelivered = (worker: string, destination: string) =>
    deliveriesBy(worker, destination).every(({ length }) => length > 0)

  const first = await start('first')
  await scene.send('shop', ids)
  await until('it has delivered all to the one', () => hasDelivered('first', 'crm'))
  process.kill(first.pid, 'SIGSTOP')
  await start('second')
  await until('the other worker has delivered all', () => hasDelivered('second', 'mail'), {
    timeoutMs: 60_000,
  })
  const sentBefore = deliveriesBy('first', 'mail').flat().length
  process.kill(first.pid, 'SIGCONT')
  await until('it has joined again', () => joinsOf(first) === 2, { timeoutMs: 30_000 })
  await until('all is committed', async () => (await scene.lag()) === 0, { timeoutMs: 60_000 })
  expect(deliveriesBy('second', 'mail').map(({ length }) => length)).toEqual(ids.map(() => 1))
  // The first worker sent nothing more to `mail` after it woke up. The second worker owned the waiting
  // messages by then.
  expect(deliveriesBy('first', 'mail').flat()).toHaveLength(sentBefore)
})
