import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../../..')

type Component = { name: string; purl: string; hashes?: { alg: string }[]; licenses?: object[] }
type Bom = { bomFormat: string; metadata: { component: { name: string } }; components: Component[] }
type Lock = { packages: Record<string, { version?: string; dev?: boolean }> }

let folder: string
let bom: Bom

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-sbom-test-'))
  const file = join(folder, 'sluice.cdx.json')
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'scripts/sbom.ts'), file], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stdout + stderr)
  bom = JSON.parse(readFileSync(file, 'utf8'))
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the bill of materials is of this project, in CycloneDX', () => {
  expect(bom).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { name: 'sluice' } } })
})

test('it names every package of a production install, and no other', () => {
  const { packages }: Lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const shipped = Object.entries(packages).flatMap(([path, { version, dev }]) => {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    return path === '' || dev ? [] : [`pkg:npm/${name.replace('@', '%40')}@${version}`]
  })
  expect(shipped.length).toBeGreaterThan(50)
  expect(new Set(bom.components.map(({ purl }) => purl))).toEqual(new Set(shipped))
  expect(bom.components.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['undici', 'yaml', 'kafkajs']),
  )
})

test('each has its licence and its digest', () => {
  const without = bom.components.filter(
    ({ licenses = [], hashes = [] }) => licenses.length === 0 || !hashes.some(({ alg }) => alg === 'SHA-512'),
  )
  expect(without).toEqual([])
})
