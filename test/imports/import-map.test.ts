import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { folders } from '../../scripts/folders.ts'

const root = resolve(import.meta.dirname, '../..')
const src = join(root, 'src')

type Import = { file: string; folder: string; specifier: string; isType: boolean }

const files = globSync('**/*.ts', { cwd: src })
const imports: Import[] = files.flatMap((file) => {
  const text = readFileSync(join(src, file), 'utf8')
  const folder = dirname(file).split('/')[0] ?? '.'
  const pattern =
    /^\s*(?:import|export)\s+(type\s)?[^'"]*?from\s+'([^']+)'|import\(\s*'([^']+)'\s*\)|^import\s+'([^']+)'/gm
  return [...text.matchAll(pattern)].map((match) => ({
    file,
    folder,
    specifier: match[2] ?? match[3] ?? match[4] ?? '',
    isType: match[1] !== undefined,
  }))
})
const local = imports.filter(({ specifier }) => specifier.startsWith('.'))
const packages = imports.filter(({ specifier }) => !specifier.startsWith('.'))

describe('the import map', () => {
  test('sees the code that it checks', () => {
    expect(files.length).toBeGreaterThan(40)
    expect(local.length).toBeGreaterThan(80)
    expect(packages.length).toBeGreaterThan(20)
  })

  test('every folder of src is on it', () => {
    expect([...new Set(files.map((file) => dirname(file).split('/')[0] ?? '.'))].sort()).toEqual(
      Object.keys(folders).sort(),
    )
  })

  test('folders import only what they may', () => {
    const breaches = local.flatMap(({ file, folder, specifier }) => {
      const target = relative(src, resolve(src, dirname(file), specifier)).split('/')
      const targetFolder = target.length === 1 ? '.' : (target[0] ?? '')
      if (targetFolder === folder || folders[folder]?.imports.includes(targetFolder)) return []
      return [`${file} imports ${specifier}`]
    })
    expect(breaches).toEqual([])
  })

  test('adapters are imported by their owner only', () => {
    const breaches = packages.flatMap(({ file, folder, specifier }) => {
      const owner = Object.keys(folders).find((name) =>
        folders[name]?.packages?.some((own) => specifier === own || specifier.startsWith(`${own}/`)),
      )
      return owner === undefined || owner === folder ? [] : [`${file} imports ${specifier}`]
    })
    expect(breaches).toEqual([])
  })

  test('pure folders import nothing that does I/O', () => {
    const doesIo = /^node:(net|tls|http|https|http2|dns|dgram|fs|child_process|worker_threads|cluster)(\/|$)/
    const breaches = packages.filter(
      ({ folder, specifier }) => folders[folder]?.isPure === true && doesIo.test(specifier),
    )
    expect(breaches).toEqual([])
  })

  test('node:http is had without its WebSocket', () => {
    const breaches = packages.filter(({ specifier, isType }) => specifier === 'node:http' && !isType)
    expect(breaches).toEqual([])
  })

  test('the environment is read in one place', () => {
    const readers = files.filter((file) => readFileSync(join(src, file), 'utf8').includes('process.env'))
    expect(readers.filter((file) => !/^(config|development)\/|^main\.ts$/.test(file))).toEqual([])
  })
})
