import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { chart } from '../deploy/render.ts'
import { type Ran, runTool, type Tools } from '../deploy/tools.ts'
import type { Kubernetes, KubernetesObject } from './kubernetes.ts'

/**
 * A release of the chart in its own namespace. The namespace's pods have to comply with the restricted
 * standard of Kubernetes.
 */
export type Release = {
  readonly name: string
  readonly namespace: string
  /**
   * Installs the release, or upgrades it if it exists. Waits until all its objects are ready, or until
   * `waitS` seconds have passed (default 120).
   */
  upgrade(values: Values, options?: { waitS?: number }): Promise<Ran>
  rollback(revision: number): Promise<Ran>
  uninstall(): Promise<Ran>
  /** Returns the number of the release's newest revision. */
  revision(): Promise<number>
  /** Returns the objects that Helm has given to the API server, without the hooks. */
  manifest(): Promise<KubernetesObject[]>
  /** Returns the release's hooks, which Helm runs before it installs or upgrades the other objects. */
  hooks(): Promise<KubernetesObject[]>
}

/**
 * Objects that the chart's own sets of values (`ci/*-values.yaml`) refer to. The chart doesn't create these
 * objects.
 */
const given = [
  ...['sluice-topics', 'ours'].map((name) => ({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name },
  })),
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'catalog' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
  },
]

/** The path of a values file, or the content of one. Helm merges several. */
export type Values = string | object | readonly (string | object)[]

const waitS = 120

export async function createRelease(
  kubernetes: Kubernetes,
  { helm }: Tools,
  { namespace, name = 'release' }: { namespace: string; name?: string },
): Promise<Release> {
  await kubernetes.apply([
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    },
    ...given.map((one) => ({ ...one, metadata: { ...one.metadata, namespace } })),
  ])
  const run = (...args: string[]): Promise<Ran> =>
    runTool(helm, ['--kubeconfig', kubernetes.kubeconfig, '--namespace', namespace, ...args], {
      // Helm's own files go to the folder for temporary files. Helm may warn that others can read a test's
      // files.
      env: { HELM_CACHE_HOME: tmpdir(), HELM_CONFIG_HOME: tmpdir(), HELM_DATA_HOME: tmpdir() },
    })
  return {
    name,
    namespace,
    upgrade: (values, options) =>
      withFiles([values].flat(), (files) =>
        run(
          'upgrade',
          '--install',
          name,
          chart,
          ...waiting(options?.waitS),
          ...files.flatMap((file) => ['-f', file]),
        ),
      ),
    rollback: (revision) => run('rollback', name, String(revision), ...waiting()),
    uninstall: () => run('uninstall', name, ...waiting()),
    async revision() {
      const { output } = await run('status', name, '-o', 'json')
      const { version }: { version: number } = JSON.parse(output)
      return version
    },
    async hooks() {
      return objectsOf((await run('get', 'hooks', name)).output)
    },
    async manifest() {
      return objectsOf((await run('get', 'manifest', name)).output)
    },
  }
}

function objectsOf(yaml: string): KubernetesObject[] {
  return parseAllDocuments(yaml, { version: '1.1' }).flatMap((document): KubernetesObject[] => {
    const object: KubernetesObject | null = document.toJS()
    return object === null ? [] : [object]
  })
}

function waiting(forS = waitS): string[] {
  return ['--wait', '--timeout', `${forS}s`]
}

async function withFiles<T>(
  values: readonly (string | object)[],
  use: (files: readonly string[]) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-values-'))
  try {
    const files = values.map((value, place) => {
      if (typeof value === 'string') return value
      const file = join(folder, `${place}.json`)
      writeFileSync(file, JSON.stringify(value))
      return file
    })
    return await use(files)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Returns the paths at which the API server's object lacks a declared value, or has another value. Ignores
 * values that the API server has added. Ignores empty values.
 */
export function lackingIn(live: unknown, declared: unknown, path = ''): string[] {
  if (declared === undefined || (isEmpty(declared) && isEmpty(live))) return []
  if (Array.isArray(declared)) {
    if (!Array.isArray(live) || live.length !== declared.length) return [path]
    return declared.flatMap((one, place) => lackingIn(live[place], one, `${path}[${place}]`))
  }
  if (typeof declared === 'object' && declared !== null) {
    const of: Record<string, unknown> = typeof live === 'object' && live !== null ? Object(live) : {}
    return Object.entries(declared).flatMap(([key, one]) => lackingIn(of[key], one, `${path}.${key}`))
  }
  return quantityOf(live) === quantityOf(declared)
    ? []
    : [`${path}: ${JSON.stringify(live)} in place of ${JSON.stringify(declared)}`]
}

/** Returns a quantity in one spelling. Kubernetes also writes 5000 as 5k, and 0.6 as 600m. */
function quantityOf(value: unknown): string {
  const [, number, unit = ''] = /^([\d.]+)(m|k|)$/.exec(String(value)) ?? []
  if (number === undefined) return String(value)
  return String(Number(number) * (unit === 'k' ? 1_000 : unit === 'm' ? 0.001 : 1))
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false || value === 0) return true
  return typeof value === 'object' && Object.keys(value).length === 0
}
