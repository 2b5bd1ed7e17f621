import { expect, test } from 'vitest'
import { newIds, setScene, unhurried } from '../../e2e/scene.ts'
import { startCountingReceiver } from '../../support/counting-receiver.ts'
import { until } from '../../support/until.ts'
import { startSluice } from '../../support/worker-process.ts'

test('partitions that move to a worker that joins under load, and back when it is killed, lose nothing', async () => {
  const receiver = await startCountingReceiver()
  await receiver.behave('/hook', { delayMs: [100, 200], failFirstOfEvery: 20 })
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [
        { id: 'crm', sources: ['shop'], maxInFlight: 60, hooks: [{ url: receiver.url('/hook') }] },
      ],
    },
    variables: { ...unhurried, SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s' },
  })
  const ids = newIds(5_000)
  const distinct = async () => (await receiver.count('/hook')).distinct
  const staying = await startSluice(scene.variables)
  await scene.send('shop', ids)
  await until('a part has arrived', async () => (await distinct()) > 1_000)
  const joining = await startSluice(scene.variables)
  await until('more has arrived', async () => (await distinct()) > 3_000)
  await joining.kill()
  await until('all is committed', async () => (await scene.lag()) === 0, { everyMs: 250 })
  const { delivered, repeats } = await receiver.count('/hook')
  process.stdout.write(`${ids.length} messages, a join and a kill: ${repeats} repeats after a success\n`)
  expect(delivered).toBe(ids.length)
  await staying.kill()
  scene.close()
  await receiver.stop()
})
