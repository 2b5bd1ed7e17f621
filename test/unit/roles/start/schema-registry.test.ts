import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import { openDecoder } from '../../../../src/roles/start/schema-registry.ts'
import { quietLog } from '../../../support/emitted-lines.ts'

const silent = quietLog

test('a refused schema is asked for again half a minute later where the clock was set back', async () => {
  const registry = createServer((_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"error_code":40403}')
  })
  await once(registry.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void registry.close())
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has one
  const { port } = registry.address() as AddressInfo
  const read = readConfig({ env: { SLUICE_REGISTRY_URL: `http://127.0.0.1:${port}` } })
  if (!read.ok) throw new Error(read.message)
  const decoder = await openDecoder(read.config, silent)
  onTestFinished(() => decoder.stop())
  const value = Buffer.from([0, 0, 0, 0, 9, 1])
  await decoder.decode(value)
  expect(decoder.decode(value)).toMatchObject({ ok: false, reason: 'unknown_schema' })
  const [clockMs, monotonicMs] = [Date.now(), performance.now()]
  vi.spyOn(Date, 'now').mockReturnValue(clockMs - 3_600_000)
  vi.spyOn(performance, 'now').mockReturnValue(monotonicMs + 31_000)
  onTestFinished(() => void vi.restoreAllMocks())
  expect(decoder.decode(value)).toBeInstanceOf(Promise)
})
