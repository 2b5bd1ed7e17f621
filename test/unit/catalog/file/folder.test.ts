import { execFileSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, symlink, truncate, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { type Fault, formatFault } from '../../../../src/catalog/fault.ts'
import { type CatalogFile, openCatalogFile } from '../../../../src/catalog/file/file.ts'
import { outlineOf } from '../../../../src/catalog/outline.ts'
import { createAuthority } from '../../../support/certificates.ts'
import { until } from '../../../support/until.ts'

/** Tests of a folder with a file for each destination. */

let folder: string
let file: CatalogFile | undefined
let refusals: { readonly faults: readonly string[]; readonly isPart: boolean }[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-folder-'))
  refusals = []
})

afterEach(async () => {
  file?.stop()
  file = undefined
  await rm(folder, { recursive: true, force: true })
})

function write(name: string, text: string): Promise<void> {
  return writeFile(join(folder, name), text)
}

function destination(id: string, more = ''): Promise<void> {
  return write(
    `${id}.yaml`,
    `id: ${id}\nsources: [shop]\nhooks: [{ url: https://example.com/${id} }]\n${more}`,
  )
}

function texts(faults: readonly Fault[]): readonly string[] {
  return faults.map((fault) => formatFault(fault).replaceAll(`${folder}/`, ''))
}

async function open(variablesFolder?: string): Promise<Pick<CatalogFile, 'current' | 'refused'>> {
  const opened = await openCatalogFile({
    path: folder,
    variablesFolder,
    everyMs: 10,
    settleMs: 10,
    onChange: () => undefined,
    onRefused: (faults, isPart) => refusals.push({ faults: texts(faults), isPart }),
  })
  if (!opened.ok) throw new Error(texts(opened.faults).join('\n'))
  const followed = opened.file
  file = followed
  return { current: () => followed.current(), refused: () => followed.refused() }
}

function states(): Readonly<Record<string, string>> {
  return Object.fromEntries(file === undefined ? [] : outlineOf(file.current()).destinations)
}

test('the files of a folder make one catalog, and an edit of one takes effect', async () => {
  await write('sources.yaml', 'sources: [{ id: shop }, { id: app }]')
  await destination('crm')
  await write(
    'two.json',
    '{"destinations":[{"id":"erp","sources":["app"],"hooks":[{"url":"https://example.com/"}]}]}',
  )
  await write('README.md', 'not a part')
  const { current } = await open()
  expect(states()).toEqual({ crm: 'on', erp: 'on' })
  const { version } = current()
  const erp = current().destinations.get('erp')
  await destination('crm', 'state: paused\n')
  await until('the edit is in force', () => states()['crm'] === 'paused')
  expect(current().version).not.toBe(version)
  expect(current().destinations.get('erp')).toBe(erp)
  await unlink(join(folder, 'two.json'))
  await until('the destination is removed', () => !('erp' in states()))
  expect(refusals).toEqual([])
})

test('a file with a fault refuses itself alone: what it said before stays, and all others are used', async () => {
  await write('sources.yaml', 'sources: [{ id: shop }]')
  await Promise.all([destination('crm'), destination('erp')])
  const { current, refused } = await open()
  await write('crm.yaml', 'id: crm\nsources: [shop]\nhooks:\n  - url: ftp://example.com/\n')
  await destination('erp', 'state: off\n')
  await destination('new')
  await until('the others are in force', () => 'new' in states() && refused() !== undefined)
  expect(states()).toEqual({ crm: 'on', erp: 'off', new: 'on' })
  expect(current().destinations.get('crm')?.hooks[0]?.path).toBe('/crm')
  expect(texts(refused()?.faults ?? [])).toEqual([
    expect.stringMatching(/^crm\.yaml:4:10: crm: hooks\[0\]\.url: /),
  ])
  expect(refusals.at(-1)?.isPart).toBe(true)

  await write('crm.yaml', 'id: crm\n  hooks: [')
  await until('the new fault is told', () => texts(refused()?.faults ?? [])[0]?.startsWith('crm.yaml:1:5'))
  expect(current().destinations.get('crm')?.hooks[0]?.path).toBe('/crm')
  await destination('crm', 'state: off\n')
  await until('the mended file is in force', () => states()['crm'] === 'off')
  expect(refused()).toBeUndefined()
})

test('of two files with the same destination, the one that was there before stays', async () => {
  await write('sources.yaml', 'sources: [{ id: shop }]')
  await destination('crm')
  const { current, refused } = await open()
  await write('a.yaml', 'id: crm\nsources: [shop]\nhooks: [{ url: https://evil.example/ }]\n')
  await until('the fault is told', () => refused() !== undefined)
  expect(texts(refused()?.faults ?? [])).toEqual([
    expect.stringContaining('a.yaml:1:5: crm: id: is the id of another'),
  ])
  expect(current().destinations.get('crm')?.hooks[0]?.origin).toBe('https://example.com')
})

test('an edit that breaks files that did not change is refused as a whole', async () => {
  await write('sources.yaml', 'sources: [{ id: shop }, { id: app }]')
  await destination('crm')
  const { refused } = await open()
  await write('sources.yaml', 'sources: [{ id: app }]')
  await destination('new')
  await until('the fault is told', () => refused() !== undefined)
  expect(texts(refused()?.faults ?? [])).toEqual([
    expect.stringContaining('crm.yaml:2:11: crm: sources[0]: '),
    expect.stringContaining('new.yaml:2:11: new: sources[0]: '),
  ])
  expect(refusals.at(-1)?.isPart).toBe(false)
  expect(states()).toEqual({ crm: 'on' })
})

test('a start pauses the destination of a faulty file, with its sources and its filter', async () => {
  await write('sources.yaml', 'sources: [{ id: shop }]')
  await destination('erp')
  await destination('crm', 'sharedSecret: ${CATALOG_CRM}\nfilter: { types: [track] }\n')
  const { current, refused } = await open()
  expect(states()).toEqual({ crm: 'paused', erp: 'on' })
  expect(current().destinations.get('crm')).toMatchObject({ sources: ['shop'], filter: { types: ['track'] } })
  expect(texts(refused()?.faults ?? [])).toEqual([
    expect.stringContaining('crm.yaml:4:15: crm: sharedSecret: '),
  ])
  // Other edits take effect, and it stays.
  await destination('erp', 'state: off\n')
  await until('the other edit is in force', () => states()['erp'] === 'off')
  expect(states()['crm']).toBe('paused')
  await destination('crm', 'filter: { types: [track] }\n')
  await until('the mended file is in force', () => states()['crm'] === 'on')
  expect(refused()).toBeUndefined()
})

test('a start is refused if a file does not say which messages would be lost', async () => {
  await write('sources.yaml', 'sources: [{ id: shop }]')
  await write('crm.yaml', 'id: crm\n  hooks: [')
  await expect(open()).rejects.toThrow(/^crm\.yaml:\d/)
  await write(
    'crm.yaml',
    'id: crm\nsources: [shop]\nfilter: { types: [nothing] }\nhooks: [{ url: https://example.com/ }]',
  )
  await expect(open()).rejects.toThrow(/^crm\.yaml:3:/)
  await destination('crm')
  await write('sources.yaml', 'sources: [{ id: shop, kind: nothing }]')
  await expect(open()).rejects.toThrow(/^sources\.yaml:1:/)
})

test('an emptied folder, and one that lost many files, are refused unless it says so', async () => {
  await write('sources.yaml', 'sources: [{ id: shop }]')
  await Promise.all(['a', 'b', 'c', 'd'].map((id) => destination(id)))
  const { refused } = await open()
  await Promise.all(['a', 'b'].map((id) => unlink(join(folder, `${id}.yaml`))))
  await until('the loss is told', () => refused() !== undefined)
  expect(texts(refused()?.faults ?? [])[0]).toContain('lacks 2 of the 4 destinations')
  expect(Object.keys(states())).toHaveLength(4)
  await write('sources.yaml', 'sources: [{ id: shop }]\nexpect: { destinations: 2 }')
  await until('the rest is in force', () => Object.keys(states()).length === 2)
  expect(refused()).toBeUndefined()
})

/** Makes the next version as the kubelet does. */
async function mountVersion(name: string, state: string): Promise<void> {
  await mkdir(join(folder, name))
  const crm = `id: crm\nsources: [shop]\nstate: ${state}\nhooks: [{ url: https://example.com/ }]\n`
  await write(`${name}/crm.yaml`, crm)
  await write(`${name}/sources.yaml`, 'sources: [{ id: shop }]')
  await symlink(name, join(folder, '..data_tmp'))
  await rename(join(folder, '..data_tmp'), join(folder, '..data'))
}

test('a version that Kubernetes mounts is read as a whole', async () => {
  await mountVersion('..1', 'on')
  for (const name of ['crm.yaml', 'sources.yaml']) await symlink(join('..data', name), join(folder, name))
  await open()
  expect(states()).toEqual({ crm: 'on' })
  await mountVersion('..2', 'off')
  await until('the next version is in force', () => states()['crm'] === 'off')
})

test('thousands of files are read, and a fault names its file', async () => {
  await write('sources.yaml', 'sources: [{ id: shop }]')
  const ids = Array.from({ length: 1_500 }, (_, index) => `d${index}`)
  await Promise.all(ids.map((id) => destination(id)))
  const { refused } = await open()
  expect(Object.keys(states())).toHaveLength(1_500)
  await destination('d700', 'state: nothing\n')
  await until('the fault is told', () => refused() !== undefined)
  expect(texts(refused()?.faults ?? [])[0]).toContain('d700.yaml:4:8: d700: state: ')
  expect(states()['d700']).toBe('on')
})

test('a variable that is gone keeps its value, is told, and blocks no other edit', async () => {
  const variables = await mkdtemp(join(tmpdir(), 'sluice-folder-variables-'))
  onTestFinished(() => rm(variables, { recursive: true, force: true }))
  await writeFile(join(variables, 'CATALOG_CRM'), 'the-secret')
  await write('sources.yaml', 'sources: [{ id: shop }]')
  await destination('crm', 'sharedSecret: ${CATALOG_CRM}\n')
  const { current, refused } = await open(variables)
  await unlink(join(variables, 'CATALOG_CRM'))
  await until('it is told', () => refused() !== undefined)
  await destination('erp')
  await until('the other edit is in force', () => 'erp' in states())
  expect(current().destinations.get('crm')?.sharedSecret).toBe('the-secret')
  expect(texts(refused()?.faults ?? [])).toEqual([expect.stringContaining('names the variable CATALOG_CRM')])
  await writeFile(join(variables, 'CATALOG_CRM'), 'another-secret')
  await until(
    'the new one is in force',
    () => current().destinations.get('crm')?.sharedSecret === 'another-secret',
  )
  expect(refused()).toBeUndefined()
})

test('a certificate that can not be used keeps the former one, is told, and blocks no other edit', async () => {
  const variables = await mkdtemp(join(tmpdir(), 'sluice-folder-variables-'))
  onTestFinished(() => rm(variables, { recursive: true, force: true }))
  const [first, next] = ['first', 'next'].map((name) => createAuthority('a').issue({ names: [name] }))
  const hold = async ({ cert = '', key = '' } = {}): Promise<void> => {
    await writeFile(join(variables, 'CATALOG_CERT'), cert)
    await writeFile(join(variables, 'CATALOG_KEY'), key)
  }
  await hold(first)
  await write('sources.yaml', 'sources: [{ id: shop }]')
  const tls = 'tls: { certificate: "${CATALOG_CERT}", key: "${CATALOG_KEY}" }'
  await write('crm.yaml', `id: crm\nsources: [shop]\nhooks: [{ url: https://example.com/, ${tls} }]`)
  const { current, refused } = await open(variables)
  const shown = () => current().destinations.get('crm')?.hooks[0]?.tls?.certificate
  await hold({ cert: next?.cert.slice(0, 100) ?? '', key: next?.key ?? '' })
  await until('it is told', () => refused() !== undefined)
  expect(texts(refused()?.faults ?? [])).toEqual([
    expect.stringMatching(/^crm\.yaml:3:\d+: crm: hooks\[0\]\.tls\.certificate: is not a whole certificate/),
  ])
  // Another file with a fault of its own is left out at the same time.
  await destination('faulty', 'state: nothing\n')
  await destination('erp')
  await until('the other edit is in force', () => 'erp' in states())
  expect(shown()).toBe(first?.cert.trimEnd())
  await until('both are told', () => refused()?.faults.length === 2)
  await unlink(join(folder, 'faulty.yaml'))
  await hold(next)
  await until('the new one is in force', () => shown() === next?.cert.trimEnd())
  await until('nothing is told', () => refused() === undefined)
})

test('a thousand faults of a file are placed by one reading of it', async () => {
  await write('sources.yaml', 'sources: [{ id: shop }]')
  await destination('crm')
  await open()
  const faulty = Array.from(
    { length: 1_000 },
    (_, at) => `  - { id: d${at}, sources: [shop], hooks: [{ url: ftp://a${at} }] }`,
  )
  const comments = `  # ${'x'.repeat(97)}\n`.repeat(1_000)
  await write('many.yaml', `destinations:\n${comments}${faulty.join('\n')}\n`)
  const before = process.threadCpuUsage()
  await until('the faults are told', () => refusals.length > 0, { timeoutMs: 60_000 })
  expect(refusals[0]?.faults).toHaveLength(1_000)
  expect(refusals[0]?.faults[999]).toMatch(/^many.yaml:2001:.* d999: /)
  // If this thread read the file once more for each fault, it would take a minute.
  expect(process.threadCpuUsage(before).user).toBeLessThan(10_000_000)
})

test('a folder with too many files is refused, whether or not they count, and is not looked through', async () => {
  const fill = (from: number, to: number, end: string): void => {
    for (let at = from; at < to; at++) closeSync(openSync(join(folder, `${at}${end}`), 'w'))
  }
  await write('sources.yaml', 'sources: [{ id: shop }]')
  await destination('crm')
  await open()
  fill(0, 20_000, '.yaml')
  await until('it is refused', () => refusals.length > 0, { timeoutMs: 60_000 })
  expect(refusals).toEqual([
    {
      faults: [
        `${folder}: has more than 20000 files, or very many others; keep fewer, or name another folder`,
      ],
      isPart: false,
    },
  ])
  expect(states()).toEqual({ crm: 'on' })
})

test('a folder whose files have too much text in all is refused', async () => {
  for (let at = 0; at < 65; at++) {
    await write(`${at}.yaml`, '')
    await truncate(join(folder, `${at}.yaml`), 1_024 * 1_024)
  }
  await expect(open()).rejects.toThrow('has files of more than 64 MiB in all; write less')
})

test('what is no file is a fault that names it', async () => {
  await write('sources.yaml', 'sources: [{ id: shop }]')
  await mkdir(join(folder, 'folder.yaml'))
  execFileSync('mkfifo', [join(folder, 'pipe.yaml')])
  await expect(open()).rejects.toThrow(/^folder\.yaml: is not a file; .*\npipe\.yaml: is not a file; /)
})
