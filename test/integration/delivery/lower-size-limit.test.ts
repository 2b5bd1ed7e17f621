import { expect, onTestFinished, test } from 'vitest'
import { setShopScene, unhurried } from '../../e2e/scene.ts'
import { startCountingReceiver } from '../../support/counting-receiver.ts'
import { produce, readAll } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { startSluice } from '../../support/worker-process.ts'

test('a message that waits for a retry is delivered, though message.maxBytes is lower since', async () => {
  const receiver = await startCountingReceiver()
  onTestFinished(() => receiver.stop())
  await receiver.behave('/hook', { status: 500 })
  const scene = await setShopScene(receiver.url('/hook'), {
    ...unhurried,
    SLUICE_MESSAGE_MAX_BYTES: '3MiB',
    SLUICE_RETRY_LADDER: '1s',
    SLUICE_RETRY_THEN: '1s',
  })
  const large = {
    type: 'track',
    userId: 'u1',
    event: 'Ping',
    messageId: 'm1',
    properties: { text: 'x'.repeat(2 * 1024 ** 2) },
  }
  await produce(`${scene.prefix}events`, [
    { partition: 0, key: 'u1', value: JSON.stringify(large), headers: { 'source-id': 'shop' } },
  ])
  const before = await startSluice(scene.variables)
  await until('it waits for a retry', async () => (await before.metric('sluice_parked_total')) > 0)
  await before.terminate()

  const after = await startSluice({ ...scene.variables, SLUICE_MESSAGE_MAX_BYTES: '1MiB' })
  const { requests } = await receiver.count('/hook')
  await until('it has failed again', async () => (await receiver.count('/hook')).requests > requests)
  await receiver.behave('/hook', {})
  await until('nothing is left', async () => (await scene.lag()) === 0)
  expect(
    (await readAll(`${scene.prefix}dead-letters`)).map(({ headers }) => String(headers?.['detail'])),
  ).toEqual([])
  expect((await receiver.count('/hook')).delivered).toBe(1)
  await after.terminate()
})
