import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { CatalogFile } from '../../../../src/catalog/file/file.ts'
import { readConfig } from '../../../../src/config/read.ts'
import { openCatalog } from '../../../../src/roles/catalog/open-catalog.ts'
import { createAdminMetrics } from '../../../../src/telemetry/admin-metrics.ts'

const whole = 'sources: [{ id: shop }]\ndestinations: []\n'
const faulty = 'sources: []\ndestinations: []\nsurces: []\n'
const atMost = { timeout: 60_000, interval: 20 }

let folder: string
let file: CatalogFile
let metrics: ReturnType<typeof createAdminMetrics>

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-catalog-'))
  await edit(whole)
  const read = readConfig({ env: { SLUICE_CATALOG_FILE: join(folder, 'catalog.yaml') } })
  if (!read.ok) throw new Error(read.message)
  metrics = createAdminMetrics()
  file = await openCatalog({
    role: 'worker',
    config: read.config,
    metrics,
    log: pino({ level: 'silent' }),
  })
})

afterEach(async () => {
  file.stop()
  await rm(folder, { recursive: true })
})

async function edit(text: string): Promise<void> {
  await writeFile(join(folder, 'next'), text)
  await rename(join(folder, 'next'), join(folder, 'catalog.yaml'))
}

async function shown(): Promise<string | undefined> {
  return /^sluice_catalog_refused (\d)$/m.exec(await metrics.registry.metrics())?.[1]
}

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
