import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../../src/development/free-ports.ts'
import { type Ran, runTool } from '../deploy/tools.ts'
import { kubernetesPrograms, type KubernetesPrograms } from './kubernetes-programs.ts'
import { until } from './until.ts'

/**
 * A Kubernetes cluster. It has the real API server, controllers and scheduler, and etcd. kwok simulates the
 * nodes and the states of pods.
 */
export type Kubernetes = {
  /** The path of an administrator's kubeconfig. */
  kubeconfig: string
  /** The path of kubectl. */
  program: string
  /** Runs kubectl to its end. Throws if kubectl fails, unless `mayFail` is true. */
  kubectl(args: readonly string[], options?: { input?: string; mayFail?: boolean }): Promise<Ran>
  /** Returns the objects that `kubectl get … -o json` prints. */
  get(args: readonly string[]): Promise<KubernetesObject[]>
  apply(objects: readonly object[]): Promise<void>
  /** Returns the last lines of the output of each program. */
  said(): string
  stop(): Promise<void>
}

export type KubernetesObject = {
  apiVersion: string
  kind: string
  metadata: {
    name: string
    namespace?: string
    uid: string
    creationTimestamp: string
    labels?: Record<string, string>
    ownerReferences?: { kind: string; name: string }[]
  }
  spec?: Record<string, unknown>
  status?: Record<string, unknown>
  data?: Record<string, string>
  /** Only events have this field and `reason`. */
  involvedObject?: { kind: string; name: string }
  reason?: string
}

const nodes = ['node-a', 'node-b', 'node-c']

/**
 * Starts a cluster that listens on loopback only. It has three nodes in three zones, a default storage class
 * and a second one, and the custom resources of `definitions` (paths of files).
 */
export async function startKubernetes({
  definitions,
  kwokConfig = [],
}: {
  definitions: readonly string[]
  /** More documents for kwok's configuration, for example with the behaviour of `kubectl exec`. */
  kwokConfig?: readonly object[]
}): Promise<Kubernetes> {
  const programs = await kubernetesPrograms()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-kubernetes-'))
  const children = createChildren(folder)
  const stop = async (): Promise<void> => {
    await children.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const cluster = await startServers({ programs, folder, children, kwokConfig })
    await fill(cluster, definitions)
    return {
      ...cluster,
      said: children.said,
      async stop() {
        await removeVolumes(cluster)
        await stop()
      },
    }
  } catch (cause) {
    const said = children.said()
    await stop()
    throw new Error(`Kubernetes hasn't started:\n${said}`, { cause })
  }
}

/**
 * Removes the folders of all volumes. Kubernetes creates them outside of the test's folder, and would remove
 * them only some time later.
 */
async function removeVolumes({ get }: Client): Promise<void> {
  for (const { spec } of await get(['persistentvolumes'])) {
    const { hostPath }: { hostPath?: { path: string } } = Object(spec)
    if (hostPath !== undefined) rmSync(hostPath.path, { recursive: true, force: true })
  }
}

type Client = Pick<Kubernetes, 'kubeconfig' | 'program' | 'kubectl' | 'get' | 'apply'>

async function startServers({
  programs,
  folder,
  children,
  kwokConfig,
}: {
  programs: KubernetesPrograms
  folder: string
  children: Children
  kwokConfig: readonly object[]
}): Promise<Client> {
  const [etcdPort = 0, peerPort = 0, port = 0, schedulerPort = 0, controllerPort = 0, kubeletPort = 0] =
    await freePorts(6)
  const file = (name: string): string => join(folder, name)
  const token = randomBytes(16).toString('hex')
  writeKeys(file)
  writeFileSync(file('tokens.csv'), `${token},admin,admin,"system:masters"\n`)
  const kubeconfig = file('kubeconfig.json')
  writeFileSync(kubeconfig, JSON.stringify(kubeconfigOf({ port, token, folder })))
  const etcd = `http://127.0.0.1:${etcdPort}`
  const peer = `http://127.0.0.1:${peerPort}`
  children.start(programs.etcd, [
    ...flag('data-dir', file('etcd')),
    ...flag('listen-client-urls', etcd),
    ...flag('advertise-client-urls', etcd),
    ...flag('listen-peer-urls', peer),
    ...flag('initial-advertise-peer-urls', peer),
    ...flag('initial-cluster', `default=${peer}`),
    // The data of a test need not survive a crash of the machine.
    ...flag('unsafe-no-fsync', 'true'),
  ])
  children.start(programs.apiServer, [
    ...flag('etcd-servers', etcd),
    ...flag('bind-address', '127.0.0.1'),
    ...flag('secure-port', port),
    ...flag('cert-dir', file('certificates')),
    ...flag('token-auth-file', file('tokens.csv')),
    ...flag('authorization-mode', 'RBAC'),
    ...flag('service-cluster-ip-range', '10.96.0.0/16'),
    ...flag('service-account-issuer', 'https://kubernetes.default.svc'),
    ...flag('service-account-key-file', file('accounts.pub')),
    ...flag('service-account-signing-key-file', file('accounts.key')),
    ...flag('endpoint-reconciler-type', 'none'),
    ...flag('kubelet-preferred-address-types', 'InternalIP'),
  ])
  const client = clientOf(programs.kubectl, kubeconfig)
  await until(
    'the API server is ready',
    async () => (await client.kubectl(['get', '--raw', '/readyz'], { mayFail: true })).isOk,
    { timeoutMs: 120_000, everyMs: 500 },
  )
  children.start(programs.controllerManager, [
    ...flag('kubeconfig', kubeconfig),
    ...flag('leader-elect', 'false'),
    ...flag('bind-address', '127.0.0.1'),
    ...flag('secure-port', controllerPort),
    ...flag('cert-dir', file('controller')),
    ...flag('service-account-private-key-file', file('accounts.key')),
    ...flag('root-ca-file', file('certificates/apiserver.crt')),
    // Volumes are folders of this machine.
    ...flag('enable-hostpath-provisioner', 'true'),
  ])
  children.start(programs.scheduler, [
    ...flag('kubeconfig', kubeconfig),
    ...flag('leader-elect', 'false'),
    ...flag('bind-address', '127.0.0.1'),
    ...flag('secure-port', schedulerPort),
    ...flag('cert-dir', file('scheduler')),
  ])
  writeFileSync(
    file('kwok.yaml'),
    [programs.kwokStages, ...kwokConfig.map((one) => JSON.stringify(one))].join('\n---\n'),
  )
  children.start(programs.kwok, [
    ...flag('kubeconfig', kubeconfig),
    ...flag('config', file('kwok.yaml')),
    ...flag('manage-all-nodes', 'true'),
    ...flag('cidr', '10.244.0.0/16'),
    ...flag('node-ip', '127.0.0.1'),
    ...flag('node-port', kubeletPort),
    ...flag('server-address', `127.0.0.1:${kubeletPort}`),
    ...flag('tls-cert-file', file('certificates/apiserver.crt')),
    ...flag('tls-private-key-file', file('certificates/apiserver.key')),
    ...flag('node-lease-duration-seconds', 40),
  ])
  return client
}

function flag(name: string, value: string | number): string[] {
  return [`--${name}=${value}`]
}

/** Writes the two keys with which tokens of service accounts are signed and verified. */
function writeKeys(file: (name: string) => string): void {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(file('accounts.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }))
  writeFileSync(file('accounts.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
}

function kubeconfigOf({ port, token, folder }: { port: number; token: string; folder: string }): object {
  const authority = join(folder, 'certificates/apiserver.crt')
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [
      { name: 'test', cluster: { server: `https://127.0.0.1:${port}`, 'certificate-authority': authority } },
    ],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
  }
}

function clientOf(program: string, kubeconfig: string): Client {
  const kubectl: Kubernetes['kubectl'] = async (args, { input = '', mayFail = false } = {}) => {
    const ran = await runTool(program, ['--kubeconfig', kubeconfig, ...args], { input })
    if (!ran.isOk && !mayFail) throw new Error(`kubectl ${args.join(' ')}: ${ran.text}`)
    return ran
  }
  return {
    kubeconfig,
    program,
    kubectl,
    async get(args) {
      const { output } = await kubectl(['get', ...args, '-o', 'json'])
      const got: KubernetesObject | { items: KubernetesObject[] } = JSON.parse(output)
      return 'items' in got ? got.items : [got]
    },
    async apply(objects) {
      await kubectl(['apply', '--server-side', '-f', '-'], {
        input: objects.map((one) => JSON.stringify(one)).join('\n---\n'),
      })
    },
  }
}

async function fill({ kubectl, apply, get }: Client, definitions: readonly string[]): Promise<void> {
  await kubectl(['apply', '--server-side', ...definitions.flatMap((one) => ['-f', one])])
  await kubectl([
    'wait',
    '--for=condition=Established',
    '--timeout=60s',
    'customresourcedefinitions',
    '--all',
  ])
  await apply([...['folders', 'fast'].map(storageClassOf), ...nodes.map(nodeOf)])
  await until('the nodes are ready', async () => {
    const all = await get(['nodes'])
    return all.every((node) => conditionOf(node, 'Ready') === 'True')
  })
}

/**
 * Returns `True`, `False` or `Unknown`. Returns `undefined` if the object doesn't have this condition yet.
 */
export function conditionOf({ status }: KubernetesObject, type: string): string | undefined {
  const { conditions = [] }: { conditions?: { type: string; status: string }[] } = status ?? {}
  return conditions.find((one) => one.type === type)?.status
}

/** Returns a storage class. The class at place 0 is the default. */
function storageClassOf(name: string, place: number): object {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name, annotations: { 'storageclass.kubernetes.io/is-default-class': String(place === 0) } },
    provisioner: 'kubernetes.io/host-path',
  }
}

function nodeOf(name: string): object {
  const labels = { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': `zone-of-${name}` }
  const size = { cpu: '64', memory: '256Gi', pods: '110' }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels },
    status: { allocatable: size, capacity: size },
  }
}

type Children = {
  start: (program: string, args: readonly string[]) => void
  said: () => string
  stop: () => Promise<void>
}

function createChildren(folder: string): Children {
  const started: { child: ChildProcess; exited: Promise<unknown>; log: string }[] = []
  mkdirSync(join(folder, 'logs'))
  return {
    start(program, args) {
      const log = join(folder, 'logs', program.slice(program.lastIndexOf('/') + 1))
      const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
      const stream = createWriteStream(log)
      child.stdout.pipe(stream, { end: false })
      child.stderr.pipe(stream, { end: false })
      started.push({ child, exited: new Promise((resolve) => child.once('close', resolve)), log })
    },
    said: () =>
      started
        .map(({ log }) => `${log}:\n${readFileSync(log, 'utf8').split('\n').slice(-15).join('\n')}`)
        .join('\n'),
    async stop() {
      // Programs end in reverse order, so that none of them writes to a server that has ended.
      for (const { child, exited } of started.toReversed()) {
        child.kill('SIGKILL')
        await exited
      }
    },
  }
}
