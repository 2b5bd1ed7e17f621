import { execFile, execFileSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { type InstalledPackage, installPackage } from '../support/installed-package.ts'
import { until } from '../support/until.ts'
import { startSluice } from '../support/worker-process.ts'
import { readManifest } from '../../scripts/project-files.ts'
import { newIds, setScene } from './scene.ts'
import { startUp } from './up-process.ts'

const root = resolve(import.meta.dirname, '../..')

let installed: InstalledPackage
let receiver: CountingReceiver

beforeAll(async () => {
  // A file that an earlier build could have left behind.
  mkdirSync(join(root, 'dist'), { recursive: true })
  writeFileSync(join(root, 'dist/left-behind.js'), '')
  receiver = await startCountingReceiver()
  installed = await installPackage()
})

afterAll(async () => {
  await receiver.stop()
  await installed.remove()
})

test('the package holds what runs, the runbooks and the pages, and nothing else', () => {
  const beside = ['LICENSE', 'README.md', 'package.json', 'bin/sluice.js']
  const texts = globSync(['deploy/runbooks/*.md', 'docs/*.md'], { cwd: root })
  const built = installed.files.filter((file) => file.startsWith('dist/'))
  expect(new Set(installed.files)).toEqual(new Set([...beside, ...texts, ...built]))

  const code = built.filter((file) => /^dist\/[\w-]+\.js$/.test(file))
  expect(code).toEqual(
    expect.arrayContaining(['dist/main.js', 'dist/index-thread.js', 'dist/reader-thread.js']),
  )
  expect(code).not.toContain('dist/left-behind.js')
  const pages = built.filter((file) => file.startsWith('dist/console/'))
  expect(pages.map((file) => file.replace(/-[\w-]{10}(?=\.)/, '-HASH')).toSorted()).toEqual([
    'dist/console/LICENSES.txt',
    'dist/console/LICENSES.txt.gz',
    'dist/console/console-HASH.css',
    'dist/console/console-HASH.css.gz',
    'dist/console/console-HASH.js',
    'dist/console/console-HASH.js.gz',
    'dist/console/index.html',
    'dist/console/index.html.gz',
    'dist/console/manifest.json',
  ])
  expect(built.filter((file) => !code.includes(file) && !pages.includes(file))).toEqual([
    'dist/build.json',
    'dist/typebox/LICENSE',
  ])
})

test('the package has each module once, and bundles TypeBox alone', () => {
  const folder = join(installed.folder, 'node_modules/sluice/dist')
  // Before the code of each module, the bundle has a comment with the module's path.
  const modules = globSync('*.js', { cwd: folder }).flatMap((file) =>
    [...readFileSync(join(folder, file), 'utf8').matchAll(/^\/\/ ((?:src|node_modules)\/.+)$/gm)].map(
      ([, name = '']) => name,
    ),
  )
  expect(modules.length).toBeGreaterThan(500)
  expect(modules).toHaveLength(new Set(modules).size)
  expect(modules.filter((name) => !/^(src|node_modules\/typebox)\//.test(name))).toEqual([])
})

test('installed, it says its version, and the commit and date of what it was made of', () => {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  const { version } = readManifest(root)
  const commit = git('rev-parse', '--short=12', 'HEAD')
  const date = new Date(git('log', '-1', '--format=%cI')).toISOString().replace('.000Z', 'Z')
  const said = execFileSync(process.execPath, [installed.command, '--version'], { encoding: 'utf8' })
  expect(said.replace('-dirty', '')).toBe(`${version} (commit ${commit} of ${date})\n`)
})

test('installed, sluice up without Java says what to install for Kafka in Docker', async () => {
  const folder = join(installed.folder, 'without-java')
  mkdirSync(folder)
  writeFileSync(join(folder, 'catalog.yaml'), 'sources: []\ndestinations: []\n')
  const said = await new Promise<string>((done) => {
    const ports = {
      SLUICE_HTTP_PORT: '0',
      SLUICE_GATEWAY_PORT: '0',
      SLUICE_ADMIN_PORT: '0',
      SLUICE_INDEX_PORT: '0',
    }
    const env = { PATH: dirname(process.execPath), HOME: installed.folder, ...ports }
    const options = { cwd: folder, env }
    execFile(process.execPath, [installed.command, 'up'], options, (_error, _stdout, stderr) => done(stderr))
  })
  expect(said).toContain('npm install testcontainers')
  expect(said).toContain('KAFKA_BROKERS')
})

test('installed into an empty folder, sluice up takes a message and delivers it', async () => {
  const [messageId = ''] = newIds(1)
  await installed.prepareKafka()
  writeFileSync(
    join(installed.folder, 'catalog.yaml'),
    stringify({
      sources: [{ id: 'shop', writeKeys: ['shop-write-key'] }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url('/up') }] }],
    }),
  )
  const running = await startUp(installed.folder, { program: installed.command })
  try {
    const answer = await fetch(`${running.origin}/v1/track`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('shop-write-key:')}` },
      body: JSON.stringify({ messageId, userId: 'u1', event: 'Hello' }),
    })
    expect([answer.status, await answer.json()]).toEqual([200, { success: true }])
    await until('it has arrived', async () => (await receiver.arrivals('/up')).has(messageId))
  } finally {
    expect((await running.interrupt()).code).toBe(0)
  }
})

test('installed, a worker of two processes delivers, and ends in good order', async () => {
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url('/worker') }] }],
    },
    variables: { SLUICE_WORKER_PROCESSES: '2' },
  })
  const worker = await startSluice(scene.variables, { program: installed.command })
  await scene.send('shop', newIds(20))
  await until('all have arrived', async () => (await receiver.count('/worker')).delivered === 20)
  expect((await worker.terminate()).code).toBe(0)
  scene.close()
})
