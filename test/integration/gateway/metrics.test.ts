import { expect, test } from 'vitest'
import { type GatewaySource, startGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

test.concurrent('a gateway tells the lag of a group in which no worker is', async ({ onTestFinished }) => {
  const gateway = await startGateway()
  onTestFinished(() => gateway.stop())
  const lag = (topic: string) => gateway.process.metric('sluice_group_lag_records', { topic })
  for (let nth = 0; nth < 5; nth++)
    await gateway.post('/v1/track', { userId: 'u', event: 'e', writeKey: 'KEY' })
  await until('it is read', async () => (await lag('events')) === 5)
  expect(await lag('retry.1m')).toBe(0)
})

test.concurrent('a gateway tells which catalog is in force, and that an edit is refused', async ({
  onTestFinished,
}) => {
  const sources: readonly GatewaySource[] = [{ id: 'shop', writeKeys: ['KEY'] }]
  const gateway = await startGateway({ sources })
  onTestFinished(() => gateway.stop())
  const { process } = gateway
  const versions = async () => {
    const text = await process.metrics()
    return [...text.matchAll(/^sluice_catalog_info\{version="(\w{12})"\} 1$/gm)].map(([, version]) => version)
  }
  const [before, ...others] = await versions()
  expect(before).toBeDefined()
  expect(others).toEqual([])
  gateway.rewriteCatalog([{ id: 'shop', writeKeys: ['KEY', 'KEY'] }])
  await until('it is refused', async () => (await process.metric('sluice_catalog_refused')) === 1)
  expect(await versions()).toEqual([before])
  gateway.rewriteCatalog([...sources, { id: 'other' }])
  await until('it is taken', async () => (await process.metric('sluice_catalog_refused')) === 0)
  const [after] = await versions()
  expect(after).not.toBe(before)
  expect(await process.metric('sluice_build_info', { role: 'gateway' })).toBe(1)
})
