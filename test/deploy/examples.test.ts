import { execFile } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig } from '../../src/config/read.ts'
import { madeUserKey, planOf, type Referred } from './kubelet.ts'
import { helmTemplate, type Pod, podsOf, render, type Resource } from './render.ts'
import { installTools, type Tools } from './tools.ts'

/**
 * Tests of the values for Kafka as others run it (`deploy/examples`). Each pod gets the Secrets that the product
 * makes, with all of their keys. `check:deploy` renders these values against the schemas of Kubernetes.
 */

const run = promisify(execFile)
const folder = resolve(import.meta.dirname, '../../deploy/examples')

let tools: Tools

beforeAll(async () => {
  tools = await installTools()
})

type Example = {
  /** The Secrets as the product makes them: the keys and texts of each. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>
  /** The part of the configuration that Sluice reads. */
  readonly kafka: object
  /** Which key of which Secret a file must have, by the name of the setting. */
  readonly files: Readonly<Record<string, string>>
  /** Keys that no pod may have. */
  readonly unwanted?: readonly string[]
}

const clusterCa = { 'ca.crt': 'authority of the brokers', 'ca.p12': 'p12', 'ca.password': 'pass' }

const examples: Readonly<Record<string, Example>> = {
  'strimzi-scram': {
    secrets: {
      'my-cluster-cluster-ca-cert': clusterCa,
      'sluice-user': { password: 'from Strimzi', 'sasl.jaas.config': 'ScramLoginModule …' },
    },
    kafka: { ssl: true, saslMechanism: 'scram-sha-512', saslUsername: 'sluice-user' },
    files: { caFile: 'authority of the brokers', saslPasswordFile: 'from Strimzi' },
    unwanted: ['ca.p12', 'sasl.jaas.config'],
  },
  'strimzi-tls': {
    secrets: {
      'my-cluster-cluster-ca-cert': clusterCa,
      'sluice-user': {
        'ca.crt': 'authority of the clients',
        'user.crt': 'certificate',
        'user.key': 'key',
        'user.p12': 'p12',
        'user.password': 'pass',
      },
    },
    kafka: { ssl: true, saslMechanism: 'none' },
    files: { caFile: 'authority of the brokers', certFile: 'certificate', keyFile: 'key' },
    unwanted: ['user.p12', 'user.password'],
  },
  'msk-iam': {
    secrets: {},
    kafka: { ssl: true, saslMechanism: 'aws-iam', awsRegion: 'eu-central-1' },
    files: {},
  },
  'confluent-cloud': {
    secrets: {
      'confluent-kafka': { 'api-key': 'ABCDEFGH', 'api-secret': 'cluster secret' },
      'confluent-registry': { 'api-key': 'IJKLMNOP', 'api-secret': 'registry secret' },
    },
    kafka: { ssl: true, saslMechanism: 'plain', saslUsername: 'ABCDEFGH' },
    files: { saslPasswordFile: 'cluster secret' },
  },
  redpanda: {
    secrets: { 'redpanda-ca': { 'ca.crt': 'authority' }, 'sluice-user': { password: 'of Redpanda' } },
    kafka: { ssl: true, saslMechanism: 'scram-sha-512', saslUsername: 'sluice-user' },
    files: { caFile: 'authority', saslPasswordFile: 'of Redpanda' },
  },
  'event-hubs': {
    secrets: { 'event-hubs': { primaryConnectionString: 'Endpoint=sb://…' } },
    kafka: { ssl: true, saslMechanism: 'plain', saslUsername: '$ConnectionString' },
    files: { saslPasswordFile: 'Endpoint=sb://…' },
  },
}

test('each example has its test', () => {
  const files = globSync('*.yaml', { cwd: folder }).map((file) => basename(file, '.yaml'))
  expect(files.toSorted()).toEqual(Object.keys(examples).toSorted())
})

test('the ConfigMap of the example for GitOps has every file, and the Job mounts it with the variables of its files', () => {
  const gitops = join(folder, 'gitops')
  const read = (name: string): unknown => parse(readFileSync(join(gitops, name), 'utf8'))
  const files = globSync('destinations/*', { cwd: gitops }).toSorted()
  const kustomization = Object(read('kustomization.yaml'))
  const [generated] = kustomization.configMapGenerator
  expect(generated.files.toSorted()).toEqual(files)
  expect(kustomization.resources).toEqual(['apply-job.yaml'])
  const { containers, volumes } = Object(read('apply-job.yaml')).spec.template.spec
  const [container] = containers
  const mounted = volumes.find((volume: { name: string }) => volume.name === 'destinations')
  expect(mounted.configMap.name).toBe(generated.name)
  const at = container.volumeMounts.find((mount: { name: string }) => mount.name === 'destinations')
  expect(container.args).toContain(at.mountPath)
  const texts = files.map((file) => readFileSync(join(gitops, file), 'utf8')).join()
  expect(texts).toContain('${CATALOG_')
  expect(container.envFrom).toEqual([{ secretRef: { name: 'sluice-destinations' } }])
})

test('Kustomize builds the example for GitOps, and each edit of a file makes another ConfigMap and so another Job', async () => {
  const copy = mkdtempSync(join(tmpdir(), 'sluice-gitops-'))
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }))
  cpSync(join(folder, 'gitops'), copy, { recursive: true })
  const built = async () => {
    const { stdout } = await run(tools.kustomize, ['build', copy])
    const resources = parseAllDocuments(stdout).map((document) => Object(document.toJS()))
    const [configMap, job] = ['ConfigMap', 'Job'].map((kind) => resources.find((one) => one.kind === kind))
    expect(resources.map(({ metadata }) => metadata.namespace)).toEqual(['sluice', 'sluice'])
    const { containers, volumes } = job.spec.template.spec
    expect(volumes[0].configMap.name).toBe(configMap.metadata.name)
    // The Secret has no suffix, because nobody generates it.
    expect(containers[0].envFrom).toEqual([{ secretRef: { name: 'sluice-destinations' } }])
    return configMap
  }
  const first = await built()
  expect(Object.keys(first.data).toSorted()).toEqual(['crm.yaml', 'erp.yaml', 'sources.yaml'])
  expect(first.metadata.name).toMatch(/^sluice-destinations-[a-z0-9]+$/)
  const edited = join(copy, 'destinations/crm.yaml')
  writeFileSync(edited, `${readFileSync(edited, 'utf8')}state: paused\n`)
  const second = await built()
  expect(second.data['crm.yaml']).toContain('state: paused')
  expect(second.metadata.name).not.toBe(first.metadata.name)
})

test('a folder of files is the catalog of every pod that reads it', async () => {
  const given = ['--set', 'catalog.existingConfigMap=sluice-destinations', '--set', 'catalog.folder=true']
  const pods = podsOf(await render(tools, ...given))
  const files = pods.flatMap(({ containers: [{ env }] }) =>
    env.flatMap(({ name, value }) => (name === 'SLUICE_CATALOG_FILE' ? [value] : [])),
  )
  expect(files.length).toBeGreaterThan(1)
  expect(new Set(files)).toEqual(new Set(['/etc/sluice']))
})

describe.each(Object.entries(examples))('%s', (name, { secrets, kafka, files, unwanted = [] }) => {
  const valuesFile = join(folder, `${name}.yaml`)
  const referred = Object.entries(secrets).map(([secret, texts]): Referred => {
    const data = Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')])
    return { kind: 'Secret', metadata: { name: secret }, data: Object.fromEntries(data) }
  })

  test('logs in with the Secrets that the product makes, in every pod', async () => {
    const resources = await render(tools, '-f', valuesFile)
    const pods = podsOf(resources)
    expect(pods).toHaveLength(3)
    for (const pod of pods) expect(loginOf(pod, resources)).toEqual({ kafka, files })
  })

  test('gives no pod a key that it does not need', async () => {
    const mounted = podsOf(await render(tools, '-f', valuesFile)).flatMap(({ volumes }) =>
      volumes.flatMap(({ secret }) => {
        const { items = [] }: { items?: { key: string }[] } = secret ?? {}
        return items.map(({ key }) => key)
      }),
    )
    for (const key of unwanted) expect(mounted).not.toContain(key)
  })

  /** Returns what a pod logs in with, as the configuration of Sluice has it and as its files are. */
  function loginOf(pod: Pod, resources: readonly Resource[]): object {
    const scratch = mkdtempSync(join(tmpdir(), 'sluice-example-'))
    onTestFinished(() => rmSync(scratch, { recursive: true, force: true }))
    const maps = resources.map((one) => ({ ...one, data: one.data ?? {} }))
    const { env, mounts = [] } = planOf(pod, {
      folder: scratch,
      podName: 'release-sluice-worker-0',
      resources: [...maps, ...referred, madeUserKey],
    })
    const read = readConfig({ env })
    if (!read.ok) throw new Error(JSON.stringify(read))
    const ofKafka: Record<string, unknown> = { ...read.config.kafka }
    const told = Object.keys(kafka).map((key) => [key, ofKafka[key]])
    const contents = Object.keys(files).map((key) => {
      const path = String(ofKafka[key])
      const mount = mounts.find(({ to }) => path.startsWith(`${to}/`))
      return [key, readFileSync(path.replace(mount?.to ?? '', mount?.from ?? ''), 'utf8')]
    })
    return { kafka: Object.fromEntries(told), files: Object.fromEntries(contents) }
  }
})

describe('a setting that does not exist', () => {
  const said = async (...args: readonly string[]): Promise<string> => {
    const ran = await helmTemplate(tools, ['-f', join(folder, 'msk-iam.yaml'), ...given, ...args])
    expect(ran.isOk).toBe(false)
    return ran.text
  }
  const given = ['--set', 'image.repository=sluice']

  test.each([
    ['SLUICE_DELIVERY_TIMOUT', 'Did you mean SLUICE_DELIVERY_TIMEOUT?'],
    ['SLUICE_RETRY_LIMITS', 'Did you mean SLUICE_RETRY_LIMIT?'],
    ['SLUICE_LOG_LEVLE', 'Did you mean SLUICE_LOG_LEVEL?'],
    ['SLUICE_SOMETHING_ELSE', 'docs/configuration.md lists all of them'],
  ])('is refused with the one that was meant: %s', async (name, advice) => {
    expect(await said('--set', `settings.${name}=3s`)).toContain(
      `settings.${name}: there is no such setting. ${advice}`,
    )
    expect(await said('--set-json', `extraEnv=[{"name":"${name}","value":"3s"}]`)).toContain(
      `extraEnv: ${name}: there is no such setting. ${advice}`,
    )
  })
})
