import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const src = join(root, 'src')

/** Which folders of `src` a folder may import from. Arrows go one way; `roles` joins everything. */
const allowedFolders: Record<string, readonly string[]> = {
  message: [],
  routing: ['message'],
  retry: [],
  pacing: [],
  repeats: [],
  address: [],
  http: [],
  config: ['catalog', 'retry'],
  catalog: ['address'],
  delivery: ['address', 'catalog', 'pacing'],
  gateway: ['address', 'catalog', 'message', 'pacing'],
  audience: ['message'],
  upstream: ['audience', 'message'],
  backfill: ['audience', 'pacing', 'retry', 'upstream'],
  growth: ['audience', 'backfill', 'message', 'retry'],
  kafka: ['http'],
  registry: ['http', 'message'],
  pipeline: ['message', 'routing', 'retry', 'delivery', 'pacing'],
  'delivery-log': ['delivery', 'pipeline'],
  tracing: ['config', 'delivery', 'gateway', 'pipeline', 'retry'],
  telemetry: ['audience', 'backfill', 'delivery', 'gateway', 'pipeline', 'retry'],
  development: [],
  roles: [
    'address',
    'audience',
    'backfill',
    'catalog',
    'config',
    'delivery',
    'delivery-log',
    'development',
    'gateway',
    'growth',
    'kafka',
    'message',
    'pacing',
    'pipeline',
    'registry',
    'repeats',
    'retry',
    'routing',
    'telemetry',
    'tracing',
    'upstream',
  ],
  '.': ['roles', 'config', 'telemetry'],
}

/** Folders without a socket, a file or a clock of their own. */
const pureFolders = new Set(['message', 'routing', 'retry', 'pacing', 'repeats', 'address', 'growth'])

/** Packages that belong to one folder. */
const packageOwners: Record<string, readonly string[]> = {
  kafkajs: ['kafka'],
  'aws-msk-iam-sasl-signer-js': ['kafka'],
  snappy: ['kafka'],
  'lz4-napi': ['kafka'],
  undici: ['delivery'],
  'classic-level': ['audience'],
  'change-case': ['audience'],
  '@kafkajs/confluent-schema-registry': ['registry'],
  ajv: ['registry'],
  avsc: ['registry'],
  testcontainers: ['development'],
  'prom-client': ['telemetry'],
  '@opentelemetry': ['tracing'],
  'csv-parse': ['upstream'],
  commander: ['.'],
}

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
      Object.keys(allowedFolders).sort(),
    )
  })

  test('folders import only what they may', () => {
    const breaches = local.flatMap(({ file, folder, specifier }) => {
      const target = relative(src, resolve(src, dirname(file), specifier)).split('/')
      const targetFolder = target.length === 1 ? '.' : (target[0] ?? '')
      if (targetFolder === folder || (allowedFolders[folder] ?? []).includes(targetFolder)) return []
      return [`${file} imports ${specifier}`]
    })
    expect(breaches).toEqual([])
  })

  test('adapters are imported by their owner only', () => {
    const breaches = packages.flatMap(({ file, folder, specifier }) => {
      const owners = Object.entries(packageOwners).find(
        ([name]) => specifier === name || specifier.startsWith(`${name}/`),
      )
      return owners === undefined || owners[1].includes(folder) ? [] : [`${file} imports ${specifier}`]
    })
    expect(breaches).toEqual([])
  })

  test('pure folders import nothing that does I/O', () => {
    const doesIo = /^node:(net|tls|http|https|http2|dns|dgram|fs|child_process|worker_threads|cluster)(\/|$)/
    const breaches = packages.filter(
      ({ folder, specifier }) => pureFolders.has(folder) && doesIo.test(specifier),
    )
    expect(breaches).toEqual([])
  })

  test('the environment is read in one place', () => {
    const readers = files.filter((file) => readFileSync(join(src, file), 'utf8').includes('process.env'))
    expect(readers.filter((file) => !/^(config|development)\/|^main\.ts$/.test(file))).toEqual([])
  })
})
