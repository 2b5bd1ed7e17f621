import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import type { Config } from '../../../../src/config/schema.ts'
import { openCatalog, readCatalogOrCopy } from '../../../../src/roles/catalog/open-catalog.ts'
import type { RoleCatalog } from '../../../../src/roles/catalog/role-catalog.ts'
import { createAdminMetrics } from '../../../../src/telemetry/admin-metrics.ts'

const whole = 'sources: [{ id: shop }]\ndestinations: []\n'
const faulty = 'sources: []\ndestinations: []\nsurces: []\n'
const atMost = { timeout: 60_000, interval: 20 }

let folder: string
let config: Config
let file: RoleCatalog
let metrics: ReturnType<typeof createAdminMetrics>

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-catalog-'))
  await edit(whole)
  const read = readConfig({ env: { SLUICE_CATALOG_FILE: join(folder, 'catalog.yaml') } })
  if (!read.ok) throw new Error(read.message)
  config = read.config
  metrics = createAdminMetrics()
  file = await openCatalog({
    role: 'worker',
    config,
    metrics,
    log: pino({ level: 'silent' }),
  })
})

afterEach(async () => {
  await file.stop()
  await rm(folder, { recursive: true })
})

function line(id: string, more: string): string {
  return `- { id: ${id}, sources: [shop], hooks: [{ url: "https://${id}.example" }]${more} }\n`
}

async function edit(text: string): Promise<void> {
  await writeFile(join(folder, 'next'), text)
  await rename(join(folder, 'next'), join(folder, 'catalog.yaml'))
}

async function shown(): Promise<string | undefined> {
  return /^sluice_catalog_refused (\d)$/m.exec(await metrics.registry.metrics())?.[1]
}

test('a refused edit is told in words, with its faults, until it is mended', async () => {
  expect(file.problem()).toBeUndefined()
  await edit(faulty)
  await vi.waitFor(() => expect(file.problem()).toBeDefined(), atMost)
  expect(file.problem()).toMatch(
    /catalog.yaml has had faults since 20\S+Z, and what it said before stays in force:\n.*:3:1: surces: /,
  )
  await edit(whole)
  await vi.waitFor(() => expect(file.problem()).toBeUndefined(), atMost)
})

test('a command that only shows reads as much of a faulty file as there is, and says what is wrong', async () => {
  const list = [line('crm', ''), line('erp', ', state: off, rateLimit: fast'), line('bad', ', nam: x')]
  await edit(`sources: [{ id: shop }]\ndestinations:\n${list.join('')}`)
  const log = pino({ level: 'silent' })
  const read = await readCatalogOrCopy(config, log, 'status')
  const states = [...(read.catalog?.destinations.values() ?? [])].map(({ id, state }) => `${id} ${state}`)
  expect(states).toEqual(['crm on', 'erp off', 'bad on'])
  expect(read).toMatchObject({
    warnings: [expect.stringMatching(/it has 2 faults, so processes that run go on .*\n.*erp: .*rateLimit/)],
  })
  await edit('sources: [\n')
  expect(await readCatalogOrCopy(config, log, 'status')).toMatchObject({
    catalog: undefined,
    faults: expect.stringContaining('it has a fault'),
  })
})

test.each([
  ['is undone', whole],
  ['is mended', `${whole}# mended\n`],
])('the metric of a refused file is 1 until the faulty edit %s', async (_, next) => {
  expect(await shown()).toBe('0')
  await edit(faulty)
  await vi.waitFor(async () => expect(await shown()).toBe('1'), atMost)
  await edit(next)
  await vi.waitFor(async () => expect(await shown()).toBe('0'), atMost)
})

test('the metric of a refused file is 0 again when a file that was gone is back unchanged', async () => {
  await rm(join(folder, 'catalog.yaml'))
  await vi.waitFor(async () => expect(await shown()).toBe('1'), atMost)
  await edit(whole)
  await vi.waitFor(async () => expect(await shown()).toBe('0'), atMost)
})

test('faulty files of a folder are told at the start, with what becomes of their destinations, and later', async () => {
  const parts = join(folder, 'parts')
  await mkdir(parts)
  await writeFile(join(parts, 'sources.yaml'), 'sources: [{ id: shop }]\n')
  await writeFile(join(parts, 'crm.yaml'), 'id: crm\nsources: [shop]\nhooks: [{ url: ftp://crm.example/ }]\n')
  const read = readConfig({ env: { SLUICE_CATALOG_FILE: parts } })
  if (!read.ok) throw new Error(read.message)
  const told: string[] = []
  const write = (text: string): void => {
    const { msg }: { msg: string } = JSON.parse(text)
    told.push(msg)
  }
  const log = pino({}, { write })
  const opened = await openCatalog({ role: 'worker', config: read.config, metrics, log })
  onTestFinished(() => opened.stop())
  expect(told).toContain(
    'files of the catalog have faults: until they are mended, their destinations are paused, and messages for them wait',
  )
  await writeFile(join(parts, 'erp.yaml'), 'id: erp\nsources: [shop]\nhooks: []\n')
  await vi.waitFor(
    () =>
      expect(told).toContain(
        'files of the catalog have faults: what they said before stays in force, and all others are used',
      ),
    atMost,
  )
})
