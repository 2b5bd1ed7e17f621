import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { formatFault } from '../../../../src/catalog/fault.ts'
import { type CatalogFile, openCatalogFile } from '../../../../src/catalog/file/file.ts'
import { createAuthority } from '../../../support/certificates.ts'
import { until } from '../../../support/until.ts'

/** Tests of variables that come from a folder of files, as Kubernetes mounts a Secret. */

let folder: string
let path: string
let variablesFolder: string
let changes: number
let refusals: string[]
const opened: CatalogFile[] = []

const catalog = `
sources: [{ id: shop }]
destinations:
  - { id: crm, sources: [shop], hooks: [{ url: '\${CATALOG_HOOK}' }] }
`

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-catalog-'))
  path = join(folder, 'catalog.yaml')
  variablesFolder = join(folder, 'variables')
  changes = 0
  refusals = []
  await mkdir(variablesFolder)
  await writeFile(path, catalog)
})

afterEach(async () => {
  for (const file of opened.splice(0)) file.stop()
  await rm(folder, { recursive: true })
})

async function open(variables: Record<string, string> = {}) {
  const result = await openCatalogFile({
    path,
    variables,
    variablesFolder,
    everyMs: 10,
    settleMs: 10,
    onChange: () => changes++,
    onRefused: (faults) => refusals.push(...faults.map(formatFault)),
  })
  if (result.ok) opened.push(result.file)
  return result
}

async function follow(variables?: Record<string, string>): Promise<CatalogFile> {
  const result = await open(variables)
  if (!result.ok) throw new Error(result.message)
  return result.file
}

const urlIn = (file: CatalogFile) => file.current().destinations.get('crm')?.hooks[0]?.url
const variable = (name: string) => join(variablesFolder, name)

/** Writes a version of the folder as the kubelet does: `NAME -> ..data/NAME`, and `..data -> VERSION`. */
async function mount(version: string, values: Record<string, string>): Promise<void> {
  await mkdir(variable(version))
  for (const [name, value] of Object.entries(values)) await writeFile(variable(`${version}/${name}`), value)
  await symlink(version, variable('..data_tmp'))
  await rename(variable('..data_tmp'), variable('..data'))
  for (const name of Object.keys(values))
    await symlink(join('..data', name), variable(name)).catch(() => undefined)
}

test('a variable that its file changes takes effect without a restart', async () => {
  await writeFile(variable('CATALOG_HOOK'), 'https://example.com/first\n')
  const file = await follow()
  expect(urlIn(file)).toBe('https://example.com/first')
  await writeFile(variable('CATALOG_HOOK'), 'https://example.com/second\r\n')
  await until('the new value is in force', () => urlIn(file) === 'https://example.com/second')
  expect([changes, refusals]).toEqual([1, []])
})

test('the version of a Secret that Kubernetes mounts is replaced as a whole', async () => {
  await mount('..one', { CATALOG_HOOK: 'https://example.com/one' })
  const file = await follow()
  expect(urlIn(file)).toBe('https://example.com/one')
  await mount('..two', { CATALOG_HOOK: 'https://example.com/two' })
  await rm(variable('..one'), { recursive: true })
  await until('the new value is in force', () => urlIn(file) === 'https://example.com/two')
  expect(refusals).toEqual([])
})

test('a new variable may come after the catalog that names it', async () => {
  await writeFile(variable('CATALOG_HOOK'), 'https://example.com/hook')
  const file = await follow()
  await writeFile(path, catalog.replace('CATALOG_HOOK}', 'CATALOG_HOOK}/${CATALOG_LATE}'))
  await until('the edit is refused', () => refusals.length > 0)
  expect(refusals[0]).toContain(
    `names the variable CATALOG_LATE, and the file ${variable('CATALOG_LATE')} is missing or empty; write the value into this file`,
  )
  await writeFile(variable('CATALOG_LATE'), 'late')
  await until('the edit is in force', () => urlIn(file) === 'https://example.com/hook/late')
  expect(file.refused()).toBeUndefined()
})

test.each([
  ['is missing', () => rm(variable('CATALOG_HOOK')), 'CATALOG_HOOK is missing or empty'],
  ['is empty', () => writeFile(variable('CATALOG_HOOK'), ''), 'CATALOG_HOOK is missing or empty'],
  ['has a line break only', () => writeFile(variable('CATALOG_HOOK'), '\n'), 'is missing or empty'],
  [
    'is too large',
    () => writeFile(variable('CATALOG_HOOK'), 'x'.repeat(64 * 1024 + 1)),
    'is larger than 64 KiB',
  ],
  ['is not UTF-8', () => writeFile(variable('CATALOG_HOOK'), Buffer.from([0xff])), 'is not UTF-8'],
])('a variable whose file %s is a fault that names it, and the value before stays', async (_, edit, said) => {
  await writeFile(variable('CATALOG_HOOK'), 'https://example.com/hook')
  const file = await follow({ CATALOG_OTHER: 'x' })
  await edit()
  await until('the edit is refused', () => refusals.length > 0)
  expect(refusals[0]).toContain(variable('CATALOG_HOOK'))
  expect(refusals[0]).toContain(said)
  expect(urlIn(file)).toBe('https://example.com/hook')
  expect((await open()).ok).toBe(false)
  await writeFile(variable('CATALOG_HOOK'), 'https://example.com/mended')
  await until('the mended value is in force', () => urlIn(file) === 'https://example.com/mended')
})

test('a folder that is missing is a fault that names it', async () => {
  await rm(variablesFolder, { recursive: true })
  expect(await open()).toMatchObject({
    ok: false,
    faults: [{ file: variablesFolder, problem: 'cannot be read (ENOENT)' }],
  })
})

test('a file takes precedence over the environment, and other files are no variables', async () => {
  await writeFile(variable('CATALOG_HOOK'), 'https://example.com/from-file')
  await writeFile(variable('notes.txt'), 'x'.repeat(100_000))
  const file = await follow({ CATALOG_HOOK: 'https://example.com/from-env' })
  expect(urlIn(file)).toBe('https://example.com/from-file')
})

test('a variable that the catalog does not name changes nothing', async () => {
  await writeFile(variable('CATALOG_HOOK'), 'https://example.com/hook')
  const file = await follow()
  await writeFile(variable('CATALOG_UNUSED'), 'x')
  await writeFile(variable('CATALOG_HOOK'), 'https://example.com/new')
  await until('the new value is in force', () => urlIn(file) === 'https://example.com/new')
  const before = file.current()
  await writeFile(variable('CATALOG_UNUSED'), 'y')
  await writeFile(path, `${catalog}# edited\n`)
  await until('the edit is in force', () => file.current().version !== before.version)
  expect(changes).toBe(2)
})

const authority = createAuthority('of files')
const edited = (erp: string): string => `
sources: [{ id: shop }]
destinations:
  - id: crm
    sources: [shop]
    hooks: [{ url: https://example.com/crm, tls: { certificate: '\${CATALOG_CERT}', key: '\${CATALOG_KEY}' } }]
  - { id: erp, sources: [shop], sharedSecret: '\${CATALOG_ERP}', hooks: [{ url: 'https://example.com/${erp}' }] }
`

const erpIn = (file: CatalogFile) => file.current().destinations.get('erp')
const certificateIn = (file: CatalogFile) =>
  file.current().destinations.get('crm')?.hooks[0]?.tls?.certificate

async function written({ cert, key }: { cert: string | Buffer; key: string }): Promise<void> {
  await writeFile(variable('CATALOG_CERT'), cert)
  await writeFile(variable('CATALOG_KEY'), key)
}

describe('a certificate in files that can not be used', () => {
  test.each<
    [string, (next: { cert: string; key: string }) => { cert: string | Buffer; key: string }, string]
  >([
    ['is cut', ({ cert, key }) => ({ cert: cert.slice(0, 200), key }), 'is not a whole certificate in PEM'],
    [
      'is of another key',
      ({ cert }) => ({ cert, key: authority.issue({ names: ['b'] }).key }),
      'is not the key',
    ],
    [
      'is no text',
      ({ key }) => ({ cert: Buffer.from([0x30, 0x82, 0xff]), key }),
      'CATALOG_CERT is not UTF-8',
    ],
    ['is empty', ({ key }) => ({ cert: '', key }), 'CATALOG_CERT is missing or empty'],
  ])(
    'and %s keeps the former one, is told with its destination, and keeps back no edit',
    async (_, broken, said) => {
      const first = authority.issue({ names: ['first'] })
      await written(first)
      await writeFile(variable('CATALOG_ERP'), 'former-secret')
      await writeFile(path, edited('former'))
      const file = await follow()
      const next = authority.issue({ names: ['next'] })
      await written(broken(next))
      await until('it is told', () => refusals.some((text) => text.includes(said)))
      expect(refusals.every((text) => text.includes(': crm: destinations[0].hooks[0].tls.'))).toBe(true)
      await writeFile(variable('CATALOG_ERP'), 'later-secret')
      await writeFile(path, edited('later'))
      await until('the edit is in force', () => erpIn(file)?.hooks[0]?.path === '/later')
      await until('the secret is in force', () => erpIn(file)?.sharedSecret === 'later-secret')
      expect(certificateIn(file)).toBe(first.cert.trimEnd())
      expect(file.refused()?.faults).toHaveLength(1)
      await written(next)
      await until('the next one is in force', () => certificateIn(file) === next.cert.trimEnd())
      expect(file.refused()).toBeUndefined()
    },
  )

  test('is a fault of the whole where no former one is known', async () => {
    await written({ ...authority.issue({ names: ['first'] }), cert: 'nothing' })
    await writeFile(variable('CATALOG_ERP'), 'secret')
    await writeFile(path, edited('former'))
    expect((await open()).ok).toBe(false)
    await writeFile(path, catalog)
    await writeFile(variable('CATALOG_HOOK'), 'https://example.com/hook')
    const file = await follow()
    await writeFile(path, edited('former'))
    await until('the edit is refused', () => refusals.length > 0)
    expect(refusals).toEqual([expect.stringContaining(': crm: destinations[0].hooks[0].tls.certificate: ')])
    expect(urlIn(file)).toBe('https://example.com/hook')
  })

  test('beside another fault is told once, and the edit is refused as a whole', async () => {
    const first = authority.issue({ names: ['first'] })
    await written(first)
    await writeFile(variable('CATALOG_ERP'), 'secret')
    await writeFile(path, edited('former'))
    const file = await follow()
    await writeFile(variable('CATALOG_CERT'), 'nothing')
    await writeFile(path, edited('former').replace('sources: [shop], shared', 'sources: [other], shared'))
    await until('both are told', () => refusals.some((text) => text.includes('names the source "other"')))
    const last = file.refused()?.faults.map(({ id }) => id)
    expect(last?.toSorted()).toEqual(['crm', 'erp'])
    expect(erpIn(file)?.sources).toEqual(['shop'])
  })
})
