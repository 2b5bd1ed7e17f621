import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { newSigningKey, publicKeysOf, keySetOf } from '../../../src/catalog/features/signing-keys.ts'
import { freePorts } from '../../../src/development/free-ports.ts'
import { answer, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runToEnd, writeCatalog } from '../../support/worker-process.ts'

/** The receiver of `examples` that verifies with a public key, and requests that Sluice signs. */

const ended: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

/** Starts the example. Returns its URL once it listens. */
async function example(env: Record<string, string>): Promise<string> {
  const [port = 0] = await freePorts(1)
  const file = fileURLToPath(new URL('../../../examples/node/receive-ed25519.mjs', import.meta.url))
  const child = spawn(process.execPath, [file], { env: { ...env, PORT: String(port) }, stdio: 'ignore' })
  ended.push(() => child.kill())
  const url = `http://127.0.0.1:${port}/`
  await until('it listens', async () => (await fetch(url)).status === 401)
  return url
}

async function statusOf(url: string, ed25519: readonly string[]): Promise<number> {
  const destinations = [
    { id: 'crm', sources: ['shop'], signing: { ed25519: [...ed25519] }, hooks: [{ url }] },
  ]
  const catalog = writeCatalog({ sources: [{ id: 'shop' }], destinations })
  ended.push(() => catalog.remove())
  const variables = { SLUICE_CATALOG_FILE: catalog.path, SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.1' }
  const { stdout } = await runToEnd(['destinations', 'test', 'crm', '--json'], variables)
  return JSON.parse(stdout).hooks[0].status
}

test('a receiver with a public key accepts what was signed by its key, also beside another one', async () => {
  const [key, other] = [newSigningKey(), newSigningKey()]
  const url = await example({ PUBLIC_KEY: publicKeysOf([key])[0]?.text ?? '' })
  expect(await statusOf(url, [key])).toBe(200)
  expect(await statusOf(url, [other, key])).toBe(200)
  expect(await statusOf(url, [other])).toBe(401)
})

test('a receiver that fetches the keys accepts each of them', async () => {
  const keys = [newSigningKey(), newSigningKey()]
  const served = await startReceiver(answer(200, {}, JSON.stringify(keySetOf(publicKeysOf(keys)))))
  ended.push(() => served.stop())
  const url = await example({ KEYS_URL: served.origin })
  for (const key of keys) expect(await statusOf(url, [key])).toBe(200)
  expect(await statusOf(url, [newSigningKey()])).toBe(401)
})
