import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Scene, setScene } from '../e2e/scene.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { examineApi } from './schemathesis.ts'

const writeKey = 'a-write-key'
const serverKey = 'a-server-key-of-16-and-more'
/** The paths for which a public write key isn't enough. */
const serverPaths = ['/v1/deletions', '/v1/audience-changes']

let scene: Scene
let gateway: SluiceProcess
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-schemathesis-'))
  scene = await setScene({
    catalog: {
      sources: [
        { id: 'shop', writeKeys: [writeKey], serverKeys: ['${CATALOG_SERVER_KEY}'] },
        { id: 'space', kind: 'audiences', serverKeys: ['${CATALOG_SERVER_KEY}'] },
      ],
      destinations: [],
    },
    variables: { CATALOG_SERVER_KEY: serverKey },
  })
  gateway = await startSluice(scene.variables, { role: 'gateway' })
})

afterAll(async () => {
  await gateway.kill()
  scene.close()
  rmSync(folder, { recursive: true, force: true })
})

function examine(args: readonly string[], forS: number): Promise<void> {
  return examineApi(`http://127.0.0.1:${gateway.gatewayPort}`, { folder, forS, args })
}

/** Returns the number of answers with this status, of all calls or of one. */
async function answers(status: string, call?: string): Promise<number> {
  return gateway.metric('sluice_gateway_requests_total', { status, ...(call !== undefined && { call }) })
}

const serverOperations = serverPaths.map((path) => `--include-path=${path}`)
const clientOperations = serverPaths.map((path) => `--exclude-path=${path}`)

test('what a client may send is never answered with a fault of the server', async () => {
  await examine([`--auth=${writeKey}:`, ...clientOperations], 100)
  expect(await answers('200')).toBeGreaterThan(500)
  expect(await answers('400')).toBeGreaterThan(50)
  expect(await answers('500')).toBe(0)
  expect(await answers('503')).toBe(0)
})

test('what a server may send is never answered with a fault of the server', async () => {
  await examine([`--header=Authorization: Bearer ${serverKey}`, ...serverOperations], 50)
  expect(await answers('200', 'deletions')).toBeGreaterThan(20)
  // Most times that the schema allows are far ahead, so most changes are refused.
  expect(await answers('200', 'audience_changes')).toBeGreaterThan(5)
  expect(await answers('500')).toBe(0)
  expect(await answers('503')).toBe(0)
})
