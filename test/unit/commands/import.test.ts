import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const main = resolve(import.meta.dirname, '../../../src/main.ts')
const workspace = resolve(import.meta.dirname, '../segment-import/workspace.ndjson')
const expected: object = JSON.parse(
  readFileSync(resolve(import.meta.dirname, '../segment-import/catalog.json'), 'utf8'),
)

function run(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
    input: '{"data":{}}',
  })
  return { status, stdout, stderr }
}

test('a workspace of Segment becomes a catalog on standard output, and notes on standard error', () => {
  const { status, stdout, stderr } = run('import', 'segment', workspace)
  const catalog: object = parse(stdout)
  expect(status).toBe(0)
  expect(expected).toMatchObject(catalog)
  expect(stderr).toContain('left out: mapping "Elsewhere" of destination "CRM": ')
  expect(stderr).toContain('to do: set CATALOG_WAREHOUSE_WEBHOOK_AUTHORIZATION, ')
  expect(stderr).toMatch(/3 sources and 4 destinations, all off: .+\n$/)
})

test('the secrets are written into files that only their owner may read, and never over others', () => {
  const folder = join(mkdtempSync(join(tmpdir(), 'import-')), 'secrets')
  expect(run('import', 'segment', workspace, '--variables', folder).status).toBe(0)
  expect(readdirSync(folder)).toHaveLength(5)
  const file = join(folder, 'CATALOG_CRM_ORDERS_SECRET')
  expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual(['crm-s3cret', 0o600])
  const again = run('import', 'segment', workspace, '--variables', folder)
  expect([again.status, again.stdout]).toEqual([1, ''])
  expect(again.stderr).toContain('(EEXIST): name a new folder.')
})

test('with --json, the catalog, the notes and the names of the variables are one object', () => {
  const printed: Record<string, unknown> = JSON.parse(run('import', 'segment', workspace, '--json').stdout)
  expect(Object.keys(printed)).toEqual(['catalog', 'variables', 'notes'])
  expect(printed['variables']).toContain('CATALOG_CRM_PEOPLE_SECRET')
  expect(JSON.stringify(printed)).not.toContain('crm-s3cret')
})

test('a file without anything of Segment is refused with what to give', () => {
  const { status, stderr } = run('import', 'segment', '-')
  expect([status, stderr]).toEqual([1, expect.stringContaining('give the answers of GET /sources')])
})
