import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { once } from 'node:events'
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import { Parts } from '../../../../src/roles/start/parts.ts'
import { startMember } from '../../../../src/roles/worker.ts'

/** Starts a server that accepts connections, and never answers. Resolves with its address. */
async function silentBroker(): Promise<string> {
  const server = createServer()
  onTestFinished(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return `127.0.0.1:${address.port}`
}

function catalogFile(): { path: string; write: (sourceId: string) => void } {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'catalog.json')
  return {
    path,
    write: (id) => writeFileSync(path, JSON.stringify({ sources: [{ id }], destinations: [] })),
  }
}

test('the catalog may be edited while the worker starts and Kafka does not answer yet', async () => {
  const faults: unknown[] = []
  const onFault = (fault: unknown): void => void faults.push(fault)
  process.on('unhandledRejection', onFault)
  onTestFinished(() => void process.off('unhandledRejection', onFault))
  const file = catalogFile()
  file.write('shop')
  const env = { SLUICE_KAFKA_BROKERS: await silentBroker(), SLUICE_CATALOG_FILE: file.path }
  const read = readConfig({ env })
  if (!read.ok) throw new Error('the settings are wrong')
  const said: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void said.push(line) })
  const parts = new Parts()
  const starting = startMember({ config: read.config, log, parts, onFatal: (error) => faults.push(error) })
  setTimeout(() => file.write('bakery'), 300)
  await expect(starting).rejects.toThrow('can not be used')
  await parts.stop()
  expect(said.join('')).toContain('the catalog has changed')
  expect(faults).toEqual([])
})
