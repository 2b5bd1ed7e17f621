import { expect, onTestFinished, test } from 'vitest'
import { setScene } from '../../e2e/scene.ts'
import { produce, readAll } from '../../support/kafka.ts'
import { answer, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runSluice, startSluice } from '../../support/worker-process.ts'

test('what came before the deletion of its user is not replayed, though it never had a destination', async () => {
  const receiver = await startReceiver(answer(200))
  onTestFinished(() => receiver.stop())
  const catalogOf = (sources: readonly string[]) => ({
    sources: sources.map((id) => ({ id })),
    destinations: [{ id: 'crm', sources, hooks: [{ url: receiver.origin }] }],
  })
  const scene = await setScene({ catalog: catalogOf(['shop']) })
  onTestFinished(() => scene.close())
  const worker = await startSluice(scene.variables)
  onTestFinished(async () => void (await worker.terminate()))
  const messages = ['deleted', 'kept'].map((userId) => ({
    key: userId,
    value: JSON.stringify({ type: 'track', event: 'E', userId, messageId: `of-${userId}` }),
    headers: { 'source-id': 'app' },
  }))
  await produce(`${scene.prefix}events`, messages)
  await until('both are dead', async () => (await readAll(`${scene.prefix}dead-letters`)).length === 2)

  const request = {
    requestId: 'gdpr-1',
    userId: 'deleted',
    sources: ['app'],
    requestedAt: new Date().toISOString(),
  }
  await produce(`${scene.prefix}deletions`, [{ key: 'deleted', value: JSON.stringify(request) }])
  await until('the user is deleted', async () => (await scene.lag()) === 0)
  await worker.untilLogged('the catalog has changed', () => scene.catalog.rewrite(catalogOf(['shop', 'app'])))
  await runSluice(['replay', 'dead-letters', '--reason', 'unknown_source'], scene.variables)
  await until('all is done', async () => receiver.requests.length > 0 && (await scene.lag()) === 0)
  expect(receiver.requests.map(({ body }): string => JSON.parse(String(body)).messageId)).toEqual(['of-kept'])
})
