import { expect, test } from 'vitest'
import { newIds, setScene } from '../../e2e/scene.ts'
import { startCountingReceiver } from '../../support/counting-receiver.ts'
import { createTopic } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { applyTopics, startSluice } from '../../support/worker-process.ts'

test('the retry topic of an earlier ladder is consumed until it is empty', async () => {
  const receiver = await startCountingReceiver()
  await receiver.behave('/hook', { status: 500 })
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url('/hook') }] }],
    },
    variables: { SLUICE_RETRY_LADDER: '5s', SLUICE_RETRY_THEN: '5s' },
  })
  const ids = newIds(30)
  const before = await startSluice(scene.variables)
  await scene.send('shop', ids)
  await until(
    'all are parked',
    async () => (await before.metric('sluice_parked_total', { tier: '5s' })) === 30,
  )
  await before.terminate()

  await receiver.behave('/hook', {})
  const changed = { ...scene.variables, SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s' }
  await applyTopics(changed)
  // Somebody else's, as it seems.
  await createTopic(`${scene.prefix}retry.soon`)
  const after = await startSluice(changed)
  await until('all have arrived', async () => (await receiver.count('/hook')).delivered === ids.length)
  await until('all is committed', async () => (await scene.lag()) === 0)
  expect(after.log.map(({ msg }) => msg)).toContain('a retry topic has no wait in its name, and is not read')
  expect(await after.metric('sluice_records_total', { topic: 'retry.5s' })).toBe(ids.length)
  await after.terminate()
  scene.close()
  await receiver.stop()
})
