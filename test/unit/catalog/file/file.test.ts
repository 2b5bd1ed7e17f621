import {
  appendFile,
  mkdir,
  mkdtemp,
  rename,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Catalog } from '../../../../src/catalog/catalog.ts'
import { formatFault, type Fault } from '../../../../src/catalog/fault.ts'
import { openCatalogFile, type CatalogFile } from '../../../../src/catalog/file/file.ts'
import { soonest } from '../../../support/soonest.ts'
import { until } from '../../../support/until.ts'

function catalogText(...destinations: string[]): string {
  const lines = destinations.map(
    (id) => `  - { id: ${id}, sources: [shop], hooks: [{ url: http://${id} }] }\n`,
  )
  return `sources: [{ id: shop }]\ndestinations:\n${lines.join('')}`
}

const faulty = 'sources: []\ndestinations: []\nsurces: []\nhoks: []\n'

let folder: string
let path: string
let changes: Catalog[]
let refusals: string[][]
const opened: CatalogFile[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-catalog-'))
  path = join(folder, 'catalog.yaml')
  changes = []
  refusals = []
})

afterEach(async () => {
  for (const file of opened.splice(0)) file.stop()
  await rm(folder, { recursive: true })
})

function openFile(at = path, times: { everyMs?: number; settleMs?: number } = { everyMs: 20, settleMs: 10 }) {
  return openCatalogFile({
    path: at,
    ...times,
    onChange: (catalog) => changes.push(catalog),
    onRefused: (faults: readonly Fault[]) => refusals.push(faults.map(formatFault)),
  })
}

/** Replaces the file in one step, so that no test depends on how fast a file is written. */
async function edit(text: string): Promise<void> {
  await writeFile(`${path}.new`, text)
  await rename(`${path}.new`, path)
}

async function follow(...args: Parameters<typeof openFile>): Promise<CatalogFile> {
  const result = await openFile(...args)
  if (!result.ok) throw new Error(result.message)
  opened.push(result.file)
  return result.file
}

const ids = (catalog: Catalog | undefined) => [...(catalog?.destinations.keys() ?? [])]

describe('openCatalogFile', () => {
  it('gives the catalog at once', async () => {
    await writeFile(path, catalogText('crm'))
    const file = await follow()
    expect(ids(file.current())).toEqual(['crm'])
    expect(file.refused()).toBeUndefined()
  })

  it('does not start without a file, and shows what a catalog looks like', async () => {
    const result = await openFile()
    expect(result).toMatchObject({
      ok: false,
      faults: [{ file: path, problem: 'cannot be read (ENOENT)', line: undefined }],
      message: expect.stringMatching(
        /has a fault:\n.*cannot be read \(ENOENT\); write it[^]*sources:\n {2}- id: shop\n/,
      ),
    })
  })

  it('shows an example that is a catalog', async () => {
    const result = await openFile()
    if (result.ok) throw new Error('it started without a file')
    await writeFile(path, result.message.slice(result.message.indexOf('sources:')))
    expect(ids((await follow()).current())).toEqual(['crm'])
  })

  it('does not start with a faulty file, and names every fault', async () => {
    await writeFile(path, faulty)
    const result = await openFile()
    expect(result).toMatchObject({
      ok: false,
      message: expect.stringMatching(
        /has 2 faults:\n.*:3:1: surces: is not a known key.*\n.*:4:1: hoks: is not/,
      ),
    })
  })

  it.each([
    ['an empty folder', () => mkdir(path), 'has no file that ends with .yaml, .yml or .json'],
    ['a file that is not UTF-8', () => writeFile(path, Buffer.from([0x61, 0xff])), 'is not UTF-8'],
    [
      'a file that is too large',
      async () => {
        await writeFile(path, '')
        await truncate(path, 64 * 1024 * 1024 + 1)
      },
      'is larger than 64 MiB',
    ],
  ])('does not start with %s', async (_, prepare, problem) => {
    await prepare()
    expect(await openFile()).toMatchObject({ ok: false, faults: [{ problem }] })
  })

  it('takes an edit within a second, with the times it has by default', async () => {
    await writeFile(path, catalogText('crm'))
    const file = await follow(path, {})
    const enoughMs = 1_000
    const tookMs = await soonest(enoughMs, async (nth) => {
      await writeFile(path, catalogText('crm', `mail${nth}`))
      await until('the edit is live', () => file.current().destinations.has(`mail${nth}`), { everyMs: 5 })
      expect(changes.at(-1)).toBe(file.current())
      expect(changes).toHaveLength(nth)
    })
    expect(tookMs).toBeLessThan(enoughMs)
  })

  it('keeps the objects of unchanged destinations', async () => {
    await writeFile(path, catalogText('crm', 'mail'))
    const file = await follow()
    const before = file.current()
    await edit(`# edited\n${catalogText('crm', 'chat')}`)
    await until('the edit is live', () => changes.length > 0)
    expect(file.current()).not.toBe(before)
    expect(file.current().destinations.get('crm')).toBe(before.destinations.get('crm'))
  })

  it('sees a file that is moved over it, of the same size and time', async () => {
    await writeFile(path, catalogText('aaa'))
    const time = new Date(1_700_000_000_000)
    await utimes(path, time, time)
    const file = await follow()
    await writeFile(`${path}.new`, catalogText('bbb'))
    await utimes(`${path}.new`, time, time)
    await rename(`${path}.new`, path)
    await until('the edit is live', () => file.current().destinations.has('bbb'))
    expect(changes).toHaveLength(1)
  })

  it('sees the link of a ConfigMap move to another folder', async () => {
    // A kubelet makes these links: catalog.yaml -> ..data/catalog.yaml, and ..data -> a folder for each
    // version.
    for (const version of ['one', 'two']) {
      await mkdir(join(folder, version))
      await writeFile(join(folder, version, 'catalog.yaml'), catalogText(version))
    }
    await symlink('one', join(folder, '..data'))
    await symlink(join('..data', 'catalog.yaml'), path)
    const file = await follow()
    expect(ids(file.current())).toEqual(['one'])
    await symlink('two', join(folder, '..data_tmp'))
    await rename(join(folder, '..data_tmp'), join(folder, '..data'))
    await rm(join(folder, 'one'), { recursive: true })
    await until('the edit is live', () => file.current().destinations.has('two'))
    expect(refusals).toEqual([])
  })

  it('refuses a faulty edit with every fault, once, and keeps the catalog', async () => {
    await writeFile(path, catalogText('crm'))
    const file = await follow()
    const before = file.current()
    const startMs = Date.now()
    await edit(faulty)
    await until('the edit is refused', () => file.refused())
    expect(refusals).toEqual([[expect.stringContaining('surces'), expect.stringContaining('hoks')]])
    expect(file.current()).toBe(before)
    expect(file.refused()?.faults).toHaveLength(2)
    expect(file.refused()?.sinceMs).toBeGreaterThanOrEqual(startMs)
    // A touched file is read again. If its text is still the same, there is nothing to report.
    let touches = 0
    await until('it was touched many times', async () => {
      await utimes(path, touches, touches)
      return ++touches > 20
    })
    expect(refusals).toHaveLength(1)
    expect(changes).toEqual([])
  })

  it('takes the edit that mends a faulty one', async () => {
    await writeFile(path, catalogText('crm'))
    const file = await follow()
    await edit(faulty)
    await until('the edit is refused', () => file.refused())
    await edit(catalogText('crm', 'mail'))
    await until('the mended file is live', () => file.current().destinations.has('mail'))
    expect(file.refused()).toBeUndefined()
    expect(changes).toHaveLength(1)
  })

  it('is no longer refused when a faulty edit is undone', async () => {
    await writeFile(path, catalogText('crm'))
    const file = await follow()
    const before = file.current()
    await edit(faulty)
    await until('the edit is refused', () => file.refused())
    await edit(catalogText('crm'))
    await until('the undone edit is no refusal', () => file.refused() === undefined)
    expect(file.current()).toBe(before)
    expect(changes).toEqual([])
  })

  it('counts a refusal from its first faulty edit', async () => {
    await writeFile(path, catalogText('crm'))
    const file = await follow()
    await edit(faulty)
    const first = await until('the first edit is refused', () => file.refused())
    await edit('sources: []')
    await until('the second edit is refused', () => refusals.length === 2)
    expect(file.refused()).toMatchObject({ sinceMs: first.sinceMs, faults: [{ path: 'destinations' }] })
  })

  it('keeps the catalog when its file vanishes, and goes on when it comes back', async () => {
    await writeFile(path, catalogText('crm'))
    const file = await follow()
    await rm(path)
    await until('the loss is noticed', () => file.refused())
    expect(ids(file.current())).toEqual(['crm'])
    expect(refusals).toEqual([[expect.stringContaining('cannot be read (ENOENT)')]])
    await edit(catalogText('crm', 'mail'))
    await until('the new file is live', () => file.current().destinations.has('mail'))
    expect(file.refused()).toBeUndefined()
    expect(refusals).toHaveLength(1)
  })

  it('does not take a file that is being written', async () => {
    await writeFile(path, catalogText('crm'))
    // Much longer than the pause between two writes, even on a machine that stands still for a moment.
    const file = await follow(path, { everyMs: 10, settleMs: 1_500 })
    // After each of these writes the file is a catalog without faults, but destinations are missing.
    await writeFile(path, catalogText())
    const left = ['a', 'b', 'c', 'd', 'e']
    await until('all is written', async () => {
      const id = left.shift()
      if (id !== undefined)
        await appendFile(path, `  - { id: ${id}, sources: [shop], hooks: [{ url: http://${id} }] }\n`)
      return left.length === 0
    })
    await until('the finished file is live', () => changes.length > 0, { everyMs: 5 })
    expect(changes.map(ids)).toEqual([['a', 'b', 'c', 'd', 'e']])
    expect(file.current()).toBe(changes[0])
    expect(refusals).toEqual([])
  })

  it('reads a large file while deliveries go on', async () => {
    await writeFile(path, catalogText('crm'))
    const file = await follow()
    const many = Array.from({ length: 2_000 }, (_, index) => `d${index}`)
    await edit(catalogText('crm', ...many))
    await until('the large file is live', () => file.current().destinations.size > 2_000)
    expect(file.current().destinations.size).toBe(2_001)
  })

  it('reads a file that has changed all the time, once it changes no more', async () => {
    await writeFile(path, catalogText('crm'))
    const file = await follow(path, { everyMs: 20, settleMs: 60 })
    let written = 0
    await until(
      'it is refused',
      async () => {
        if (refusals.length === 0) await edit(catalogText('crm', `d${++written}`))
        return refusals.length > 0
      },
      { everyMs: 22 },
    )
    expect(refusals).toEqual([[expect.stringContaining('changes all the time')]])
    await until('the last edit is live', () => file.current().destinations.has(`d${written}`))
    expect(file.refused()).toBeUndefined()
  })

  it('calls nobody after stop', async () => {
    await writeFile(path, catalogText('crm'))
    const stopped = await follow()
    const other = await follow()
    stopped.stop()
    const before = stopped.current()
    await edit(catalogText('mail'))
    await until('the other one sees the edit', () => other.current().destinations.has('mail'))
    await edit(catalogText('chat'))
    await until('the other one sees the next edit', () => other.current().destinations.has('chat'))
    expect(stopped.current()).toBe(before)
    expect(changes).toHaveLength(2)
  })
})
