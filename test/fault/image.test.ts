import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { freePorts } from '../../src/development/free-ports.ts'
import { madeUserKey, planOf, projectConfigMap } from '../deploy/kubelet.ts'
import { ofName, only, podOf, render } from '../deploy/render.ts'
import { installTools } from '../deploy/tools.ts'
import { runContainer, startContainer } from '../support/container.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { ensureCommands } from '../support/debian.ts'
import { type Image, type ImageBuilds, prepareImageBuilds } from '../support/image.ts'
import { randomPrefix, testKafka } from '../support/kafka.ts'
import { until } from '../support/until.ts'
import { writeCatalog } from '../support/worker-process.ts'

const root = resolve(import.meta.dirname, '../..')
const buildMs = 10 * 60_000
const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
const date = '2026-01-02T03:04:05+01:00'

let builds: ImageBuilds
let image: Image

beforeAll(async () => {
  builds = await prepareImageBuilds()
  image = await builds.build('amd64', {
    BUILD_COMMIT: commit,
    BUILD_DATE: date,
    BUILD_VERSION: '9.8.7',
    BUILD_SOURCE: 'https://git.example/team/sluice',
  })
}, buildMs)

afterAll(() => builds.remove(), buildMs)

const nativeModules = '{@antoniomuso/lz4-napi-*,@napi-rs/snappy-*,classic-level/prebuilds}/**/*.node'

describe('the image', () => {
  test('says what it was made of', async () => {
    const said = await runContainer(image, { args: ['--version'], env: {} })
    expect(said).toContain(`(commit ${commit.slice(0, 12)} of 2026-01-02T02:04:05Z)`)
    expect(image.config.Labels).toMatchObject({
      'org.opencontainers.image.revision': commit,
      'org.opencontainers.image.version': '9.8.7',
      'org.opencontainers.image.source': 'https://git.example/team/sluice',
    })
  })

  test('has the command sluice, as runbooks have it run in a pod', async () => {
    const said = await runContainer(image, {
      entrypoint: ['/bin/sh', '-c'],
      args: ['sluice --version'],
      env: {},
    })
    expect(said).toContain(`(commit ${commit.slice(0, 12)}`)
  })

  test('leads from its help to the pages of its version', async () => {
    const said = await runContainer(image, { args: ['status', '--help'], env: {} })
    expect(said).toMatch(/https:\/\/git\.example\/team\/sluice\/blob\/v[\d.]+\/docs\/status\.md/)
  })

  test('prints the runbooks of its version', async () => {
    const said = await runContainer(image, { args: ['runbook', 'SluiceLagGrows'], env: {} })
    expect(said).toContain('## What to do')
  })

  test('holds what runs: no npm, no compiler, no sources, no packages of development, and adds less than 175 MB', () => {
    const commands = globSync(['usr/bin/*', 'usr/local/bin/*', 'usr/sbin/*'], { cwd: image.tree })
    expect(commands).toContain('usr/local/bin/node')
    expect(
      commands.filter((path) =>
        /\/(npm|npx|corepack|yarn|make|gcc|cc|c\+\+|g\+\+|python3?|git|curl)$/.test(path),
      ),
    ).toEqual([])
    for (const name of [
      'src',
      'scripts',
      'node_modules/typescript',
      'node_modules/node',
      'package-lock.json',
      '.npmrc',
    ])
      expect([name, existsSync(join(image.tree, 'sluice', name))]).toEqual([name, false])
    const kilobytes = execFileSync('du', ['-sc', '--block-size=1kB', 'sluice', 'usr/local/bin'], {
      cwd: image.tree,
      encoding: 'utf8',
    })
    expect(Number(/(\d+)\ttotal/.exec(kilobytes)?.[1])).toBeLessThan(175_000)
  })

  test('has a bill of materials that names each package in it, and Node', () => {
    type Bom = { components: { name: string; version: string }[] }
    const bom: Bom = JSON.parse(readFileSync(join(image.tree, 'sluice/sluice.cdx.json'), 'utf8'))
    const listed = new Set(bom.components.map(({ name, version }) => `${name}@${version}`))
    const manifests = globSync(
      [
        'node_modules/*/package.json',
        'node_modules/@*/*/package.json',
        'node_modules/**/node_modules/*/package.json',
      ],
      { cwd: join(image.tree, 'sluice') },
    )
    const present = manifests.map((file): { name: string; version: string } =>
      JSON.parse(readFileSync(join(image.tree, 'sluice', file), 'utf8')),
    )
    expect(present.length).toBeGreaterThan(50)
    expect(
      present.map(({ name, version }) => `${name}@${version}`).filter((one) => !listed.has(one)),
    ).toEqual([])
    expect(listed).toContain(`node@${process.versions.node}`)
  })

  test('runs as nobody in particular, who can write to the folder for state and to /tmp alone', async () => {
    const attempt = `const { writeFileSync } = require('node:fs')
      const told = ['/sluice/x', '/etc/x', '/usr/local/bin/x', '/tmp/x'].map((file) => {
        try { writeFileSync(file, ''); return 'written' } catch (error) { return error.code }
      })
      console.log(JSON.stringify([process.pid, process.getuid(), process.getgid(), ...told]))`
    const said = await runContainer(image, {
      entrypoint: ['/usr/local/bin/node', '-e'],
      args: [attempt],
      env: {},
    })
    expect(JSON.parse(said)).toEqual([1, 65532, 65532, 'EROFS', 'EROFS', 'EROFS', 'written'])
  })

  test('has all that a login to Amazon MSK needs', async () => {
    const sign = `const { generateAuthToken } = await import('aws-msk-iam-sasl-signer-js')
      console.log((await generateAuthToken({ region: 'eu-central-1' })).token.length)`
    const said = await runContainer(image, {
      entrypoint: ['/usr/local/bin/node', '--input-type=module', '-e'],
      args: [sign],
      env: { AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE', AWS_SECRET_ACCESS_KEY: 'secret' },
    })
    expect(Number(said)).toBeGreaterThan(100)
  })

  test('loads all that Sluice imports: of no package too much was left out', async () => {
    const dist = join(image.tree, 'sluice/dist')
    const imported = globSync('**/*.js', { cwd: dist }).flatMap((file) =>
      [
        ...readFileSync(join(dist, file), 'utf8').matchAll(/(?:from |import |import\()"([@a-z][\w@./:-]*)"/g),
      ].map(([, name = '']) => name),
    )
    const packages = new Set(imported.filter((name) => !/^(node:|testcontainers$)/.test(name)))
    expect(packages.size).toBeGreaterThan(20)
    const load = `for (const name of ${JSON.stringify([...packages])}) await import(name)
      console.log('all are there')`
    const said = await runContainer(image, {
      entrypoint: ['/usr/local/bin/node', '--input-type=module', '-e'],
      args: [load],
      env: {},
    })
    expect(said).toBe('all are there\n')
  })

  test(
    'for arm64 is built on this machine, has native modules for it alone, and loads them',
    async () => {
      ensureCommands({ 'qemu-aarch64-static': 'qemu-user-static', file: 'file' })
      const foreign = await builds.build('arm64')
      expect(foreign.architecture).toBe('arm64')
      const modules = globSync(nativeModules, { cwd: join(foreign.tree, 'sluice/node_modules') })
      expect(modules).toHaveLength(3)
      for (const file of ['/usr/local/bin/node', ...modules.map((path) => `/sluice/node_modules/${path}`)])
        expect(execFileSync('file', [join(foreign.tree, file)], { encoding: 'utf8' })).toContain(
          'ARM aarch64',
        )
      execFileSync('cp', [
        execFileSync('which', ['qemu-aarch64-static'], { encoding: 'utf8' }).trim(),
        join(foreign.tree, 'qemu'),
      ])
      const load = `const require = process.getBuiltinModule('module').createRequire('/sluice/package.json')
      const bytes = Buffer.from('the same the same the same')
      require('classic-level')
      const back = require('lz4-napi').uncompressSync(require('lz4-napi').compressSync(bytes))
      console.log(process.arch, require('snappy').uncompressSync(require('snappy').compressSync(bytes)).equals(back))`
      const said = execFileSync(
        'chroot',
        ['--userspec=65532:65532', foreign.tree, '/qemu', '/usr/local/bin/node', '-e', load],
        { encoding: 'utf8', env: { PATH: process.env['PATH'] } },
      )
      expect(said).toBe('arm64 true\n')
    },
    buildMs,
  )
})

describe('on a real Kafka', () => {
  let receiver: CountingReceiver
  let state: string

  beforeAll(async () => {
    receiver = await startCountingReceiver()
    state = mkdtempSync(join(tmpdir(), 'sluice-image-state-'))
    chownSync(state, 65532, 65532)
  })

  afterAll(async () => {
    await receiver.stop()
    rmSync(state, { recursive: true, force: true })
  })

  test('topics, gateway and worker run from it, deliver, and end by one SIGTERM', async () => {
    const catalog = writeCatalog({
      sources: [{ id: 'shop', writeKeys: ['shop-key'] }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url('/crm') }] }],
    })
    const [gatewayPort, gatewayHttp, workerHttp] = await freePorts(3)
    const prefix = randomPrefix()
    const env = {
      SLUICE_KAFKA_BROKERS: testKafka().join(','),
      SLUICE_KAFKA_TOPIC_PREFIX: prefix,
      SLUICE_TOPICS_DEVELOPMENT: 'true',
      SLUICE_TOPICS_PARTITIONS: '4',
      SLUICE_WORKER_PROCESSES: '2',
      SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.0/8',
      SLUICE_GATEWAY_PORT: String(gatewayPort),
      SLUICE_GATEWAY_SHUTDOWN_DELAY: '0s',
    }
    const mounts = [
      { from: catalog.path, to: '/etc/sluice/catalog.yaml' },
      { from: state, to: '/var/lib/sluice', isWritable: true },
    ]
    const said = await runContainer(image, { args: ['topics', 'apply'], env })
    expect(said).toContain(`created    ${prefix}events`)
    const gateway = startContainer(image, {
      args: ['gateway'],
      env: { ...env, SLUICE_HTTP_PORT: String(gatewayHttp) },
      mounts,
    })
    const worker = startContainer(image, {
      args: ['worker'],
      env: { ...env, SLUICE_HTTP_PORT: String(workerHttp) },
      mounts,
    })
    for (const [port, container] of [
      [gatewayHttp, gateway],
      [workerHttp, worker],
    ] as const)
      await until('it is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok).catch(
        (cause: unknown) => {
          throw new Error(container.said, { cause })
        },
      )
    const answer = await fetch(`http://127.0.0.1:${gatewayPort}/v1/track`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('shop-key:')}` },
      body: JSON.stringify({ messageId: 'from-an-image', userId: 'u1', event: 'Hello' }),
    })
    expect(answer.status).toBe(200)
    await until('it has arrived', async () => (await receiver.arrivals('/crm')).has('from-an-image'))
    for (const container of [worker, gateway]) {
      const { code, tookMs } = await container.terminate()
      expect([code, container.said]).toEqual([0, expect.stringContaining('"stopped"')])
      expect(tookMs).toBeLessThan(10_000)
    }
    catalog.remove()
  })

  test('the pods of the chart run from it as they are, follow an edit of the ConfigMap, and end within their grace', async () => {
    const tools = await installTools()
    const folder = mkdtempSync(join(tmpdir(), 'sluice-pods-'))
    // The folder has the mode of a kubelet's folders. A process may pass through it, but not list it.
    chmodSync(folder, 0o711)
    const [gatewayPort, gatewayHttp, workerHttp] = await freePorts(3)
    const values = {
      kafka: { brokers: testKafka(), topicPrefix: randomPrefix() },
      topics: { partitions: 4, replication: 1, minInsync: 1 },
      catalog: { inline: catalogOf(receiver, 'first') },
      gateway: { shutdownDelay: '0s' },
      settings: {
        SLUICE_TOPICS_DEVELOPMENT: true,
        SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.0/8',
      },
    }
    writeFileSync(join(folder, 'values.json'), JSON.stringify(values))
    const resources = await render(tools, '-f', join(folder, 'values.json'))
    const plan = (kind: string, podName: string, httpPort = 0) => {
      const of = kind === 'Job' ? ofName(resources, kind, '-topics') : only(resources, kind)
      const place = { folder, podName, resources: [...resources, madeUserKey] }
      const { env, ...rest } = planOf(podOf(of), place)
      // Here all processes listen on one address, so each needs ports of its own. In Kubernetes each pod has
      // an address, so the chart sets the same ports for all pods.
      const ports = { SLUICE_HTTP_PORT: String(httpPort), SLUICE_GATEWAY_PORT: String(gatewayPort) }
      return { ...rest, env: { ...env, ...ports } }
    }
    await runContainer(image, plan('Job', 'topics-1'))
    const worker = startContainer(image, plan('StatefulSet', 'release-sluice-worker-0', workerHttp))
    const gateway = startContainer(image, plan('Deployment', 'gateway-1', gatewayHttp))
    for (const port of [workerHttp, gatewayHttp])
      await until('it is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok)
    const send = (messageId: string) =>
      fetch(`http://127.0.0.1:${gatewayPort}/v1/track`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa('shop-key:')}` },
        body: JSON.stringify({ messageId, userId: 'u1', event: 'Hello' }),
      })
    expect((await send('before')).status).toBe(200)
    await until('it has arrived', async () => (await receiver.arrivals('/first')).has('before'))
    const catalog = join(folder, 'release-sluice-worker-0/catalog')
    projectConfigMap(catalog, { 'catalog.yaml': stringify(catalogOf(receiver, 'first', 'second')) })
    await until('the edit is live', () => worker.said.includes('the catalog has changed'))
    expect((await send('after')).status).toBe(200)
    await until('it has arrived there too', async () => (await receiver.arrivals('/second')).has('after'))
    for (const [kind, container] of [
      ['StatefulSet', worker],
      ['Deployment', gateway],
    ] as const) {
      const { code, tookMs } = await container.terminate()
      expect([code, container.said]).toEqual([0, expect.stringContaining('"stopped"')])
      expect(tookMs).toBeLessThan(podOf(only(resources, kind)).terminationGracePeriodSeconds * 1_000)
    }
    expect(worker.said).toContain('"processes":2')
    rmSync(folder, { recursive: true, force: true })
  })
})

/**
 * Returns a catalog with a destination for each of `ids`. Each destination gets the messages of the source
 * `shop`, at the receiver's path of the same name.
 */
function catalogOf(receiver: CountingReceiver, ...ids: string[]) {
  const destinations = ids.map((id) => ({ id, sources: ['shop'], hooks: [{ url: receiver.url(`/${id}`) }] }))
  return { sources: [{ id: 'shop', writeKeys: ['shop-key'] }], destinations }
}
