import { createServer, type Server } from 'node:net'
import { once } from 'node:events'
import { afterEach, expect, test } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import type { Config } from '../../../../src/config/schema.ts'
import { Parts } from '../../../../src/roles/start/parts.ts'
import { openOwnTelemetry } from '../../../../src/roles/start/telemetry.ts'
import { freePorts } from '../../../../src/development/free-ports.ts'

let parts: Parts
let holder: Server | undefined

afterEach(async () => {
  await parts.stop()
  holder?.close()
  holder = undefined
})

function configOf(variables: Record<string, string>): Config {
  const read = readConfig({ env: { SLUICE_HTTP_HOST: '127.0.0.1', ...variables } })
  if (!read.ok) throw new Error(read.message)
  return read.config
}

async function open(config: Config): Promise<{ port: number; said: unknown[] }> {
  const said: unknown[] = []
  parts ??= new Parts()
  const { port } = await openOwnTelemetry({
    config,
    parts,
    log: { info: (line: object, text?: string) => said.push({ ...line, text }), flush: () => undefined },
  })
  return { port, said }
}

test('two roles on one machine have different ports for metrics, and the second one says so', async () => {
  parts = new Parts()
  const first = await open(configOf({}))
  const second = await open(configOf({}))
  // Other programs of this machine may have the usual port too.
  expect(first.port).toBeGreaterThanOrEqual(9_400)
  expect(second.port).toBeGreaterThan(first.port)
  expect(second.said).toEqual([
    {
      port: second.port,
      usual: 9_400,
      text: 'metrics and probes have another port than usual, because another process has that: set http.port (SLUICE_HTTP_PORT) to choose one',
    },
  ])
})

test('a port that is set is the one, or the start fails', async () => {
  parts = new Parts()
  const [port = 0] = await freePorts(1)
  holder = createServer()
  holder.listen({ host: '127.0.0.1', port })
  await once(holder, 'listening')
  await expect(open(configOf({ SLUICE_HTTP_PORT: String(port) }))).rejects.toThrow(
    `can not listen on 127.0.0.1:${port} (EADDRINUSE): set SLUICE_HTTP_PORT to another port.`,
  )
})
