import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { unknownIds } from '../../../../src/commands/log/unknown-ids.ts'
import { readConfig } from '../../../../src/config/read.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-unknown-ids-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const file = join(folder, 'catalog.yaml')
writeFileSync(
  file,
  'sources: [{ id: shop }]\ndestinations: [{ id: crm, sources: [shop], hooks: [{ url: "https://crm.example/" }] }]\n',
)

function said(ids: { destination?: string; source?: string }, path = file): Promise<string[]> {
  const read = readConfig({ env: { SLUICE_CATALOG_FILE: path } })
  if (!read.ok) throw new Error('the settings are refused')
  const given = { destination: ids.destination, source: ids.source }
  return unknownIds(read.config, pino({ level: 'silent' }), 'log find', given)
}

test('what the catalog lacks is said, with what was meant', async () => {
  expect(await said({ destination: 'cmr', source: 'nobody' })).toEqual([
    'The catalog has no destination "cmr": did you mean crm?',
    'The catalog has no source "nobody".',
  ])
})

test.each([
  ['of ids that it has', { destination: 'crm', source: 'shop' }],
  ['without ids', {}],
])('nothing is said %s', async (_what, ids) => {
  expect(await said(ids)).toEqual([])
})

test('nothing is said if the catalog can not be read', async () => {
  expect(await said({ destination: 'cmr' }, join(folder, 'nothing.yaml'))).toEqual([])
})
