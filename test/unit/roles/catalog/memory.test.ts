import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import type { Config } from '../../../../src/config/schema.ts'
import { checkCatalog } from '../../../../src/commands/catalog/catalog-check.ts'
import { openCatalog, refuseFaultyCatalog } from '../../../../src/roles/catalog/open-catalog.ts'
import type { RoleCatalog } from '../../../../src/roles/catalog/role-catalog.ts'
import { createAdminMetrics } from '../../../../src/telemetry/admin-metrics.ts'

/** Tests of what a process knows of the catalog that was in force before it started. */

let folder: string
let lines: { level: number; msg: string; [field: string]: unknown }[]
const opened: RoleCatalog[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-catalog-'))
  lines = []
})

afterEach(async () => {
  for (const file of opened.splice(0)) await file.stop()
  await rm(folder, { recursive: true })
})

const path = (name: string) => join(folder, name)

function configOf(env: Record<string, string> = {}): Config {
  const read = readConfig({
    env: { SLUICE_CATALOG_FILE: path('catalog.yaml'), SLUICE_STATE_FOLDER: path('state'), ...env },
  })
  if (!read.ok) throw new Error(read.message)
  return read.config
}

async function write(destinations: number, first = '', name = 'catalog.yaml'): Promise<void> {
  const entries = Array.from(
    { length: destinations },
    (_, at) =>
      `  - { id: customer-${at}, sources: [shop], sharedSecret: planted-secret, hooks: [{ url: https://example.com/planted-path }] }\n`,
  )
  await writeFile(path(name), `${first}sources: [{ id: shop }]\ndestinations:\n${entries.join('')}`)
}

async function open(config = configOf()): Promise<RoleCatalog> {
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const file = await openCatalog({
    role: 'worker',
    config,
    metrics: createAdminMetrics(),
    log,
  })
  opened.push(file)
  return file
}

/** Runs a role with the present catalog until it has started, and stops it. */
async function runOnce(config = configOf()): Promise<void> {
  const file = await open(config)
  file.inForce()
  await file.stop()
}

const stateFile = () => path(`state/${encodeURIComponent('sluice.sluice')}/catalog.json`)

test('a restart with a file that was cut off is refused with the names of the lost, until the file says so itself', async () => {
  await write(10)
  await runOnce()
  await write(5)
  const said = /lacks 5 of the 10 destinations of the catalog that was last in force here: customer-5, /
  await expect(open()).rejects.toThrow(said)
  await expect(open()).rejects.toThrow(`if this is another catalog, remove ${stateFile()}`)
  await expect(refuseFaultyCatalog(configOf())).rejects.toThrow(said)
  await expect(checkCatalog(configOf(), { path: undefined, mayLackVariables: false })).rejects.toThrow(said)

  await write(5, 'expect: { destinations: 5 }\n')
  await runOnce()
  expect(lines.at(-1)).toMatchObject({
    msg: 'the catalog has changed since it was last in force here',
    changes: { destinations: ['-customer-5', '-customer-6', '-customer-7', '-customer-8', '-customer-9'] },
  })
  await write(5)
  await runOnce()
})

test('another file in the same state folder is compared too', async () => {
  await write(10)
  await runOnce()
  await write(4, '', 'other.yaml')
  await expect(open(configOf({ SLUICE_CATALOG_FILE: path('other.yaml') }))).rejects.toThrow('lacks 6 of')
})

test('a role that never starts leaves the earlier catalog as the one to compare with', async () => {
  await write(10)
  await runOnce()
  await write(5, 'expect: { destinations: 5 }\n')
  await (await open()).stop()
  await write(5)
  await expect(open()).rejects.toThrow('lacks 5 of the 10')
})

test('the state folder gets no secret, and no part of a file is left in it', async () => {
  await write(3)
  const file = await open()
  file.inForce()
  file.inForce()
  await file.stop()
  const names = await readdir(path(`state/${encodeURIComponent('sluice.sluice')}`))
  expect(names).toEqual(['catalog.json'])
  const text = await readFile(stateFile(), 'utf8')
  expect(text).not.toContain('planted')
  expect(JSON.parse(text)).toMatchObject({
    sources: { shop: 'on' },
    destinations: { 'customer-0': 'on', 'customer-1': 'on', 'customer-2': 'on' },
  })
})

test('the first start has nothing to compare with', async () => {
  await write(1)
  await runOnce()
  expect(lines).toEqual([])
})

test.each([
  ['that is no JSON', '{"version":"a"', 'it is not JSON'],
  ['of another kind', '{"version":"a","sources":{},"destinations":{"a":1}}', 'it is not an outline'],
])('a start with an outline %s says so once, and replaces it', async (_, text, reason) => {
  await write(1)
  await mkdir(path(`state/${encodeURIComponent('sluice.sluice')}`), { recursive: true })
  await writeFile(stateFile(), text)
  await runOnce()
  expect(lines).toMatchObject([{ level: 40, file: stateFile(), reason: expect.stringContaining(reason) }])
  expect(JSON.parse(await readFile(stateFile(), 'utf8'))).toMatchObject({ sources: { shop: 'on' } })
})

test('a process whose state folder can not be written runs without an outline, and says so once', async () => {
  await write(3)
  await writeFile(path('no-folder'), '')
  const file = await open(configOf({ SLUICE_STATE_FOLDER: path('no-folder') }))
  file.inForce()
  file.inForce()
  await file.stop()
  expect(lines).toMatchObject([
    { level: 40, msg: expect.stringContaining('the outline of the catalog can not be kept') },
  ])
})
