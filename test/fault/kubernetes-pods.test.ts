import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { type Place, planOf, probe } from '../deploy/kubelet.ts'
import { chart, type Pod } from '../deploy/render.ts'
import { installTools } from '../deploy/tools.ts'
import { type AdminTokens, makeTokens } from '../support/admin.ts'
import { createAuthority } from '../support/certificates.ts'
import { type Container, type ContainerPlan, runContainer, startContainer } from '../support/container.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { type GuardedKafka, startGuardedKafka, user } from '../support/guarded-kafka.ts'
import { type Image, type ImageBuilds, prepareImageBuilds } from '../support/image.ts'
import { randomPrefix } from '../support/kafka.ts'
import { type Kubernetes, type KubernetesObject, startKubernetes } from '../support/kubernetes.ts'
import { createRelease, type Release } from '../support/release.ts'
import { until } from '../support/until.ts'

const commit = execFileSync('git', ['rev-parse', 'HEAD'], {
  cwd: resolve(chart, '../../..'),
  encoding: 'utf8',
})
const namespace = 'delivers'
const writeKey = 'shop-key'
/** The authority of the receivers' certificates. A process trusts it only if its settings say so. */
const authority = createAuthority('company')

let kubernetes: Kubernetes
let kafka: GuardedKafka
let receiver: CountingReceiver
let builds: ImageBuilds
let image: Image
let release: Release
let folder: string
let tokens: AdminTokens

beforeAll(async () => {
  const tools = await installTools()
  kubernetes = await startKubernetes({ definitions: tools.customResources })
  kafka = await startGuardedKafka()
  receiver = await startCountingReceiver({ identity: authority.issue({ names: ['127.0.0.1'] }) })
  tokens = await makeTokens()
  builds = await prepareImageBuilds()
  image = await builds.build('amd64', { BUILD_COMMIT: commit.trim(), BUILD_DATE: '2026-01-02T03:04:05Z' })
  release = await createRelease(kubernetes, tools, { namespace })
  folder = mkdtempSync(join(tmpdir(), 'sluice-pods-'))
  // The folder has the mode of a kubelet's folders. A process may pass through it, but not list it.
  chmodSync(folder, 0o711)
}, 75 * 60_000)

afterAll(async () => {
  await kubernetes.stop()
  await kafka.stop()
  await receiver.stop()
  await builds.remove()
  tokens.remove()
  rmSync(folder, { recursive: true, force: true })
})

test('the pods that the API server has run as processes with what they refer to, answer their probes, deliver, and tell operators of it', async () => {
  await kubernetes.apply(referred())
  const { isOk, text } = await release.upgrade([join(chart, 'ci/minimal-values.yaml'), values()])
  expect(isOk ? '' : text).toBe('')

  const place: Omit<Place, 'podName'> = {
    folder,
    resources: await kubernetes.get(['secrets,configmaps', '-n', namespace]),
    claims: await folderOfClaims(),
  }
  await runContainer(image, planFor(await jobPod(), place))
  const pods = (await kubernetes.get(['pods', '-n', namespace])).map(ofPod)
  expect(pods.map(({ spec }) => spec.containers[0].args)).toEqual([
    ['admin'],
    ['gateway'],
    ['log', 'serve'],
    ['worker'],
    ['worker'],
  ])
  const running = pods.map((pod) => ({ ...pod, container: startContainer(image, planFor(pod, place, pods)) }))
  for (const { spec, address, container } of running) {
    await until('its readiness probe says so', () => probe(spec, 'readinessProbe', address)).catch(
      (cause: unknown) => {
        throw new Error(container.said, { cause })
      },
    )
    expect(await probe(spec, 'livenessProbe', address)).toBe(true)
  }

  const [admin, gateway, log, ...workers] = running
  const answer = await fetch(`${originOf(gateway)}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${writeKey}:`)}` },
    body: JSON.stringify({ messageId: 'from-a-pod', userId: 'u1', event: 'Hello' }),
  })
  expect(answer.status).toBe(200)
  await until('it has arrived', async () => (await receiver.arrivals('/crm')).has('from-a-pod'))

  const told = await until('the admin API knows of it', async () => {
    const reply = await fetch(`${originOf(admin)}/v1/log/messages/from-a-pod`, {
      headers: { authorization: `Bearer ${tokens.read}` },
    })
    return reply.ok && reply.text()
  })
  expect(told).toContain('"crm"')

  for (const { name } of [...workers, ...(log === undefined ? [] : [log])])
    expect(readdirSync(place.claims?.get(`state-${name}`) ?? '')).not.toEqual([])
  for (const { spec, container } of running) await expectEndsInTime(container, spec)
})

function values(): object {
  return {
    kafka: {
      brokers: [kafka.at.SCRAM],
      topicPrefix: randomPrefix(),
      ssl: true,
      tls: { existingSecret: 'kafka-tls' },
      sasl: { mechanism: 'scram-sha-512', existingSecret: 'kafka-login' },
    },
    topics: { partitions: 4, replication: 1, minInsync: 1 },
    catalog: { existingConfigMap: 'our-catalog', variablesSecret: 'our-secrets' },
    trustedCertificates: { existingConfigMap: 'company-ca' },
    gateway: { replicas: 1 },
    worker: { minReadySeconds: 0 },
    admin: { enabled: true, tokens: { existingSecret: 'admin-tokens' } },
    deliveryLog: { existingSecret: 'delivery-log', userKeyKey: 'user-key', index: { enabled: true } },
    settings: { SLUICE_TOPICS_DEVELOPMENT: true, SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.0/8' },
  }
}

/**
 * Returns the Secrets and ConfigMaps that an operator makes before the release, because its values refer to
 * them.
 */
function referred(): object[] {
  const catalog = {
    sources: [{ id: 'shop', writeKeys: [writeKey] }],
    destinations: [
      {
        id: 'crm',
        sources: ['shop'],
        sharedSecret: '${CATALOG_CRM_SECRET}',
        hooks: [{ url: receiver.url('/crm') }],
      },
    ],
  }
  return [
    secret('kafka-tls', { 'ca.crt': kafka.authority.cert }),
    secret('kafka-login', { username: user.name, password: user.password }),
    secret('our-secrets', { CATALOG_CRM_SECRET: 'a-shared-secret' }),
    secret('admin-tokens', { tokens: readFileSync(tokens.file, 'utf8') }),
    secret('delivery-log', { token: 'token-of-the-index', 'user-key': 'key-to-hash-users' }),
    map('our-catalog', { 'catalog.yaml': stringify(catalog) }),
    map('company-ca', { 'ca.crt': authority.cert }),
  ]
}

function secret(name: string, stringData: object): object {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, stringData }
}

function map(name: string, data: object): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data }
}

type RunPod = { name: string; spec: Pod; address: string }

/**
 * Returns a pod with a loopback address that begins with 127.77 and ends like its IP address in the cluster.
 * Loopback has enough addresses for all pods.
 */
function ofPod({ metadata, spec, status }: KubernetesObject): RunPod {
  const [, , ...own] = String(status?.['podIP']).split('.')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the format of the API
  return { name: metadata.name, spec: spec as unknown as Pod, address: `127.77.${own.join('.')}` }
}

/**
 * Returns the pod of Helm's hook Job, with the fields that the API server adds. The pod itself is gone,
 * because kwok has counted it as done and Helm has removed it.
 */
async function jobPod(): Promise<RunPod> {
  const job = (await release.hooks()).find(({ kind }) => kind === 'Job')
  const { output } = await kubernetes.kubectl(
    ['create', '--dry-run=server', '-n', namespace, '-o', 'json', '-f', '-'],
    { input: JSON.stringify(job) },
  )
  const { spec }: { spec: { template: { spec: Pod } } } = JSON.parse(output)
  return { name: 'topics', spec: spec.template.spec, address: '127.77.0.1' }
}

/** Returns the origin of a pod's port `http`, which a Service finds by the same name. */
function originOf(pod: RunPod | undefined): string {
  const port = pod?.spec.containers[0].ports?.find(({ name }) => name === 'http')?.containerPort
  return `http://${pod?.address}:${port}`
}

/**
 * Returns the plan of a pod's container, with other addresses. Here all containers use the machine's network,
 * which doesn't know the names of Services.
 */
function planFor(
  { name, spec, address }: RunPod,
  place: Omit<Place, 'podName'>,
  others: readonly RunPod[] = [],
): ContainerPlan {
  const plan = planOf(spec, { ...place, podName: name })
  const hosts = ['HTTP', 'GATEWAY', 'ADMIN', 'INDEX'].map((of) => [`SLUICE_${of}_HOST`, address])
  const log = others.find((one) => one.spec.containers[0].name === 'log')
  const asked = plan.env['SLUICE_INDEX_URL']?.replace(`${release.name}-sluice-log`, log?.address ?? '')
  return {
    ...plan,
    env: {
      ...plan.env,
      ...Object.fromEntries(hosts),
      ...(asked !== undefined && { SLUICE_INDEX_URL: asked }),
    },
  }
}

/** Returns the folder of the volume that each claim is bound to, by the name of the claim. */
async function folderOfClaims(): Promise<Map<string, string>> {
  const volumes = await kubernetes.get(['persistentvolumes'])
  return new Map(
    volumes.map(({ spec }) => {
      const { claimRef, hostPath }: { claimRef: { name: string }; hostPath: { path: string } } = Object(spec)
      return [claimRef.name, hostPath.path]
    }),
  )
}

async function expectEndsInTime(container: Container, { terminationGracePeriodSeconds }: Pod): Promise<void> {
  const { code, tookMs } = await container.terminate()
  expect([code, container.said]).toEqual([0, expect.stringContaining('"stopped"')])
  expect(tookMs).toBeLessThan(terminationGracePeriodSeconds * 1_000)
}
