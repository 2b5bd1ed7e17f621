import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { Definitions } from '../../../../src/catalog-log/definitions.ts'
import { CatalogLog } from '../../../../src/catalog-log/log.ts'
import { newKeyLine, readKeys } from '../../../../src/catalog-log/keys.ts'
import { RecordSeals } from '../../../../src/catalog-log/record.ts'
import { readConfig } from '../../../../src/config/read.ts'
import type { WrittenRecord } from '../../../../src/message/records.ts'
import { openCatalog, readCatalogOrCopy } from '../../../../src/roles/catalog/open-catalog.ts'
import { TopicMemory } from '../../../../src/roles/catalog/topic-memory.ts'
import { createAdminMetrics } from '../../../../src/telemetry/admin-metrics.ts'
import { until } from '../../../support/until.ts'

/** A Kafka that isn't there. The topic that it had was seen before, and is on the disk. */
async function machine() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-copy-start-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const line = newKeyLine()
  writeFileSync(join(folder, 'keys'), line)
  const read = readConfig({
    env: {
      SLUICE_KAFKA_BROKERS: '127.0.0.1:1',
      SLUICE_STATE_FOLDER: join(folder, 'state'),
      SLUICE_CATALOG_SOURCE: 'topic',
      SLUICE_CATALOG_KEYS_FILE: join(folder, 'keys'),
    },
  })
  const keys = readKeys(line)
  if (!read.ok || !keys.ok) throw new Error('no settings')
  const topic = 'sluice.catalog'
  const seals = new RecordSeals(topic, keys.keys)
  const definitions = new Definitions(topic, keys.keys)
  const log = new CatalogLog(seals, ({ problem }) => {
    throw new Error(problem)
  })
  const name = { kind: 'destination', id: 'crm' } as const
  const plain = { id: 'crm', sources: ['shop'], sharedSecret: 's', hooks: [{ url: 'https://example.com/' }] }
  const stored = definitions.stored(name, plain, { earlier: undefined, atMs: 1 })
  const records = [
    seals.write('source/shop', { id: 'shop' }, 7),
    seals.write('destination/crm', stored, 7),
    seals.head({
      revision: 7,
      changeId: 'c',
      atMs: 1,
      by: 'ann',
      counts: { source: 1, destination: 1 },
      lineage: 'one',
    }),
  ]
  for (const [offset, record] of records.entries()) log.take(wholeOf(record, offset))
  const lines: { msg: string; [field: string]: unknown }[] = []
  const logger = pino({ level: 'info' }, { write: (text: string) => void lines.push(JSON.parse(text)) })
  return { config: read.config, log, lines, logger }
}

function wholeOf({ key, value, headers = {} }: WrittenRecord, offset: number) {
  const bytes = Object.entries(headers).map(([name, text]) => [name, Buffer.from(String(text))] as const)
  return {
    offset,
    key: Buffer.from(String(key)),
    value: Buffer.from(String(value)),
    headers: Object.fromEntries(bytes),
    timestampMs: 0,
  }
}

test('while Kafka is away, a start uses the last good copy, and says so with the topic and the offset', async () => {
  const { config, log, lines, logger } = await machine()
  const open = () => openCatalog({ config, metrics: createAdminMetrics(), log: logger, role: 'gateway' })
  await expect(open()).rejects.toThrow('Kafka at 127.0.0.1:1 can not be used')
  const memory = new TopicMemory(config, logger)
  memory.begin(() => ({ log, topicId: 'id-1' }))
  await memory.stop()

  const catalog = await open()
  onTestFinished(() => catalog.stop())
  expect(catalog.current().version).toBe('r7')
  expect(catalog.current().destinations.get('crm')?.sharedSecret).toBe('s')
  expect(
    lines.find(({ msg }) => msg.includes('the last good copy on this machine is in force')),
  ).toMatchObject({
    topicId: 'id-1',
    offset: 3,
    version: 'r7',
    problem: expect.stringContaining('can not be used'),
  })
  expect(catalog.refused()?.faults).toHaveLength(1)
  expect(catalog.topic?.trouble()).toMatchObject({
    kind: 'copy',
    copy: { next: 3, revision: 7, lineage: 'one' },
  })

  const read = await readCatalogOrCopy(config, logger, 'status')
  expect([...(read.catalog?.destinations.keys() ?? [])]).toEqual(['crm'])
  expect(read).toMatchObject({ warnings: [expect.stringContaining('the copy on this machine (r7, ')] })
})

test('a copy that could not be written, because the disk was full for example, is written later without a change', async () => {
  const { config, log, lines, logger } = await machine()
  const inTheWay = join(mkdtempSync(join(tmpdir(), 'sluice-copy-')), 'file')
  onTestFinished(() => rmSync(dirname(inTheWay), { recursive: true }))
  writeFileSync(inTheWay, '')
  const folder = join(inTheWay, 'state')
  const memory = new TopicMemory({ ...config, state: { ...config.state, folder } }, logger, undefined, 20)
  memory.begin(() => ({ log, topicId: 'id-1' }))
  await until('it could not be written', () => lines.length > 0)
  rmSync(inTheWay)
  await until('it is written', async () => (await memory.place())?.revision === 7)
  await memory.stop()
  expect(lines).toHaveLength(1)
})

test('a copy that can not be kept is told once, with the way out', async () => {
  const { config, log, lines, logger } = await machine()
  const memory = new TopicMemory({ ...config, state: { ...config.state, folder: '/dev/null/none' } }, logger)
  memory.begin(() => ({ log, topicId: 'id-1' }))
  await memory.stop()
  await memory.read()
  expect(lines.map(({ msg }) => msg)).toEqual([
    'the copy of the catalog can not be kept or read: while its topic can not be read, a restart fails (SLUICE_STATE_FOLDER)',
  ])
})
