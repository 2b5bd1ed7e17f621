import { globSync } from 'node:fs'
import { basename, join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chart } from '../deploy/render.ts'
import { installTools, type Ran, type Tools } from '../deploy/tools.ts'
import { someValues } from '../support/chart-values.ts'
import {
  conditionOf,
  type Kubernetes,
  type KubernetesObject,
  startKubernetes,
} from '../support/kubernetes.ts'
import { createRelease, lackingIn, type Release, type Values } from '../support/release.ts'
import { until } from '../support/until.ts'

const valueSets = globSync('ci/*-values.yaml', { cwd: chart }).toSorted()
const minimal = join(chart, 'ci/minimal-values.yaml')
/**
 * Values without the wait between the replacements of two pods. The wait is of no use here, because nothing
 * runs in the pods.
 */
const quick = { worker: { minReadySeconds: 0 } }

/** The seed of the sequence of values. The same seed gives the same values. */
const seed = Number(process.env['KUBERNETES_TEST_SEED'] ?? 1)
const steps = 12
const keptByHelm = 10

/** A label of pods that kwok ends as if their command had failed. */
const failingLabel = 'example.org/fails'
const failingStage = {
  apiVersion: 'kwok.x-k8s.io/v1alpha1',
  kind: 'Stage',
  metadata: { name: 'pod-fails' },
  spec: {
    resourceRef: { apiGroup: 'v1', kind: 'Pod' },
    selector: {
      matchLabels: { [failingLabel]: 'true', 'app.kubernetes.io/component': 'topics' },
      matchExpressions: [{ key: '.status.phase', operator: 'In', values: ['Pending', 'Running'] }],
    },
    weight: 1,
    next: { statusTemplate: 'phase: Failed' },
  },
}

let tools: Tools
let kubernetes: Kubernetes

beforeAll(async () => {
  tools = await installTools()
  kubernetes = await startKubernetes({ definitions: tools.customResources, kwokConfig: [failingStage] })
}, 75 * 60_000)

afterAll(() => kubernetes.stop())

const releaseIn = (namespace: string, name?: string): Promise<Release> =>
  createRelease(kubernetes, tools, { namespace, ...(name !== undefined && { name }) })

describe('a real API server', () => {
  test.each(valueSets)(
    'takes all of %s, has its pods ready, and none of it after an uninstall',
    async (set) => {
      const release = await releaseIn(basename(set, '.yaml'))
      expect(failureOf(await release.upgrade([join(chart, set), quick]))).toBe('')
      await expectAsDeclared(release)
      expect(failureOf(await release.uninstall())).toBe('')
      await until('nothing is left', async () => (await leftOf(release)).length === 0)
    },
  )

  test('refuses values that can only be a mistake before anything is there, and says which', async () => {
    const release = await releaseIn('mistakes')
    const given = [
      { worker: { replica: 3 } },
      { topics: { partitions: 'many' } },
      { settings: { SLUICE_DELIVERY_TIMEOUT: { s: 3 } } },
      { kafka: { brokers: ['kafka'] } },
    ]
    const said = ['replica', 'topics.partitions', 'settings.SLUICE_DELIVERY_TIMEOUT', 'kafka.brokers.0']
    for (const [place, values] of given.entries()) {
      const { isOk, text } = await release.upgrade([minimal, values])
      expect(isOk).toBe(false)
      // Newer versions of Helm write a path with slashes.
      expect(text.replaceAll('/', '.')).toContain(said[place])
    }
    expect(await leftOf(release)).toEqual([])
  })

  test('keeps the volumes of workers after an uninstall where values say so, and nothing else', async () => {
    const release = await releaseIn('kept')
    expect(
      failureOf(
        await release.upgrade([
          minimal,
          quick,
          { worker: { replicas: 2, state: { whenDeleted: 'Retain' } } },
        ]),
      ),
    ).toBe('')
    expect(failureOf(await release.uninstall())).toBe('')
    const volumes = [0, 1].map((pod) => `PersistentVolumeClaim state-release-sluice-worker-${pod}`)
    await until('only volumes are left', async () => (await leftOf(release)).length === volumes.length)
    expect(await leftOf(release)).toEqual(volumes)
  })

  test('lets a node be emptied, a worker at a time', async () => {
    const release = await releaseIn('emptied')
    const onOneNode = { nodeSelector: { 'kubernetes.io/hostname': 'node-a' } }
    expect(
      failureOf(
        await release.upgrade([minimal, { worker: { ...onOneNode, replicas: 2, minReadySeconds: 0 } }]),
      ),
    ).toBe('')
    const evict = (pod: string): Promise<Ran> =>
      kubernetes.kubectl(['create', '--raw', `/api/v1/namespaces/emptied/pods/${pod}/eviction`, '-f', '-'], {
        input: JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod } }),
        mayFail: true,
      })
    const selector = { 'kubernetes.io/hostname': 'no-such-node' }
    expect(
      failureOf(
        await kubernetes.kubectl([
          'patch',
          'statefulset',
          'release-sluice-worker',
          '-n',
          'emptied',
          '--type=merge',
          '-p',
          // The pod that replaces the evicted pod does not become ready.
          JSON.stringify({
            spec: {
              updateStrategy: { type: 'OnDelete', rollingUpdate: null },
              template: { spec: { nodeSelector: selector } },
            },
          }),
        ]),
      ),
    ).toBe('')
    expect(failureOf(await evict('release-sluice-worker-1'))).toBe('')
    const second = await evict('release-sluice-worker-0')
    expect(second.isOk).toBe(false)
    expect(second.text).toContain('disruption budget')
  })
})

describe('the Job that makes the topics', () => {
  test('has done its work before anything else is there, and is gone afterwards', async () => {
    const release = await releaseIn('hook')
    expect(failureOf(await release.upgrade([minimal, quick]))).toBe('')
    const events = await kubernetes.get(['events', '-n', 'hook'])
    const atOf = (kind: string, reason: string): number => {
      const times = events.filter((event) => event.involvedObject?.kind === kind && event.reason === reason)
      return Math.min(...times.map(({ metadata }) => Date.parse(metadata.creationTimestamp)))
    }
    expect(atOf('Job', 'Completed')).toBeLessThanOrEqual(atOf('StatefulSet', 'SuccessfulCreate'))
    expect(await kubernetes.get(['jobs', '-n', 'hook'])).toEqual([])
  })

  test('changes nothing where it fails: neither a first install nor an upgrade goes on', async () => {
    const release = await releaseIn('hook-fails')
    const failing = { commonLabels: { [failingLabel]: 'true' } }
    const first = await release.upgrade([minimal, quick, failing], { waitS: 10 })
    expect([first.isOk, first.text]).toEqual([false, expect.stringContaining('pre-install')])
    // Helm 3.17 leaves the hooks that came before the one that fails. The next install replaces them.
    const hooks = new Set((await release.hooks()).map(nameOf))
    const left = (await leftOf(release)).filter((name) => !/^(Job|Pod) /.test(name))
    expect(left.filter((name) => !hooks.has(name))).toEqual([])
    expect(failureOf(await release.uninstall())).toBe('')
    expect(failureOf(await release.upgrade([minimal, quick]))).toBe('')
    const before = await rolePodsOf(release)
    const second = await release.upgrade([minimal, quick, failing, { worker: { replicas: 1 } }], {
      waitS: 10,
    })
    expect([second.isOk, second.text]).toEqual([false, expect.stringContaining('pre-upgrade')])
    expect((await rolePodsOf(release)).map(uidOf)).toEqual(before.map(uidOf))
    expect(failureOf(await release.upgrade([minimal, quick]))).toBe('')
    await expectAsDeclared(release)
  })
})

test(
  'any values follow any others, back to any revision, and nothing is left in the end',
  { timeout: 30 * 60_000 },
  async () => {
    const release = await releaseIn('chaos')
    const sets = fc.sample(someValues, { numRuns: steps, seed })
    const random = fc.sample(fc.nat(), { numRuns: steps, seed })
    for (const [place, values] of sets.entries()) {
      const told = `step ${place} of seed ${seed}: ${JSON.stringify(values)}`
      expect(failureOf(await release.upgrade([minimal, quick, values])), `refused: ${told}`).toBe('')
      await expectAsDeclared(release, told)
      if (place % 3 !== 2) continue
      const newest = await release.revision()
      const revision = newest - ((random[place] ?? 0) % Math.min(newest, keptByHelm))
      expect(failureOf(await release.rollback(revision)), `${told}, back to ${revision}`).toBe('')
      await expectAsDeclared(release, `${told}, back to ${revision}`)
    }
    expect(failureOf(await release.uninstall())).toBe('')
    await until('nothing is left', async () => (await leftOf(release)).length === 0)
  },
)

describe('an upgrade', () => {
  test('that begins to scale keeps the pods that there are', async () => {
    const release = await releaseIn('scaled')
    const scaling = {
      worker: { autoscaling: { enabled: true } },
      gateway: { autoscaling: { enabled: true } },
    }
    expect(
      failureOf(
        await release.upgrade([minimal, quick, { worker: { replicas: 3 }, gateway: { replicas: 3 } }]),
      ),
    ).toBe('')
    expect(failureOf(await release.upgrade([minimal, quick, scaling]))).toBe('')
    expect(await replicasOf(release)).toEqual({ Deployment: 3, StatefulSet: 3 })
    // This is what an autoscaler does.
    await kubernetes.kubectl(['scale', 'statefulset/release-sluice-worker', '-n', 'scaled', '--replicas=5'])
    expect(failureOf(await release.upgrade([minimal, quick, scaling, { shutdownTimeout: '20s' }]))).toBe('')
    expect(await replicasOf(release)).toEqual({ Deployment: 3, StatefulSet: 5 })
  })

  test.each(['keda', 'hpa'])('from scaling by %s to the other way leaves one of them', async (kind) => {
    const release = await releaseIn(`from-${kind}`)
    expect(failureOf(await release.upgrade(scaledBy(kind)))).toBe('')
    if (kind === 'keda') await makeAsKeda(release)
    expect(failureOf(await release.upgrade(scaledBy(kind === 'keda' ? 'hpa' : 'keda')))).toBe('')
    await expectAsDeclared(release)
  })

  test.each([{ size: '20Gi' }, { storageClass: 'fast' }, { persistent: false }])(
    'that would change the volumes of workers is refused before it changes anything, with a command after which it works and the same pods run: %o',
    async (state) => {
      const release = await releaseIn(`volumes-${Object.keys(state).join('').toLowerCase()}`)
      expect(failureOf(await release.upgrade([minimal, quick]))).toBe('')
      const before = await podsOf(release)
      const { isOk, text } = await release.upgrade([minimal, quick, { worker: { state } }])
      expect([isOk, text]).toEqual([false, expect.stringContaining('worker.state')])
      expect(await release.revision()).toBe(1)
      await runAdvice(text)
      expect((await podsOf(release)).map(uidOf)).toEqual(before.map(uidOf))
      expect(failureOf(await release.upgrade([minimal, quick, { worker: { state } }]))).toBe('')
      await expectAsDeclared(release)
    },
  )

  test('that would change by what pods are known is refused before it changes anything, and works as it says', async () => {
    const release = await releaseIn('names')
    expect(failureOf(await release.upgrade([minimal, quick, { fullnameOverride: 'fixed' }]))).toBe('')
    const renamed = { fullnameOverride: 'fixed', nameOverride: 'other' }
    const { isOk, text } = await release.upgrade([minimal, quick, renamed])
    expect([isOk, text]).toEqual([false, expect.stringContaining('Give fullnameOverride another name')])
    expect(await release.revision()).toBe(1)
    expect(
      failureOf(await release.upgrade([minimal, quick, { ...renamed, fullnameOverride: 'another' }])),
    ).toBe('')
    await expectAsDeclared(release)
  })
})

function scaledBy(kind: string): Values {
  return [minimal, quick, { worker: { autoscaling: { enabled: true, kind } } }]
}

/** Runs, word for word, the kubectl commands that the error text advises. */
async function runAdvice(text: string): Promise<void> {
  const commands = [...text.matchAll(/kubectl ([a-z].*?--cascade=orphan)/g)].map(
    ([, command = '']) => command,
  )
  expect(commands.length).toBeGreaterThan(0)
  for (const command of new Set(commands)) await kubernetes.kubectl(command.split(' '))
}

/**
 * KEDA isn't installed here. In its place, creates the HorizontalPodAutoscaler of the release's ScaledObject.
 * The ScaledObject says what name this HorizontalPodAutoscaler has.
 */
async function makeAsKeda({ namespace }: Release): Promise<void> {
  const [scaled] = await kubernetes.get(['scaledobjects', '-n', namespace])
  if (scaled === undefined) throw new Error('no ScaledObject')
  const { name, uid } = scaled.metadata
  const advanced: { horizontalPodAutoscalerConfig?: { name?: string } } = scaled.spec?.['advanced'] ?? {}
  const target = { apiVersion: 'apps/v1', kind: 'StatefulSet', name }
  await kubernetes.apply([
    {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: {
        namespace,
        name: advanced.horizontalPodAutoscalerConfig?.name ?? `keda-hpa-${name}`,
        labels: { 'app.kubernetes.io/managed-by': 'keda-operator' },
        ownerReferences: [
          {
            apiVersion: scaled.apiVersion,
            kind: scaled.kind,
            name,
            uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: { scaleTargetRef: target, minReplicas: 1, maxReplicas: 6 },
    },
  ])
}

/** Returns the output of a tool that failed, or an empty string if the tool succeeded. */
function failureOf({ isOk, text }: Ran): string {
  return isOk ? '' : text
}

/** The kinds of objects that Kubernetes itself makes for the objects of the chart. */
const derived = new Set(['ControllerRevision', 'EndpointSlice', 'Endpoints', 'ReplicaSet'])

/**
 * Checks that the objects of a release are those that Helm has declared. No field was dropped on the way, no
 * object of an earlier revision is left, and all pods are ready.
 */
async function expectAsDeclared(release: Release, told = 'now'): Promise<void> {
  const declared = await release.manifest()
  const live = await allOf(release)
  // A HorizontalPodAutoscaler sets the number of pods of these objects, within limits of its own.
  const scaled = new Set(
    declared.filter(({ kind }) => kind === 'HorizontalPodAutoscaler').map(({ metadata }) => metadata.name),
  )
  const lacking = declared.flatMap((one) => {
    const found = live.find(({ kind, metadata }) => kind === one.kind && metadata.name === one.metadata.name)
    return lackingIn(found, scaled.has(one.metadata.name) ? withoutReplicas(one) : one, nameOf(one))
  })
  expect(lacking, `otherwise: ${told}`).toEqual([])
  const names = new Set(declared.map(nameOf))
  const others = live.filter(
    (one) =>
      !names.has(nameOf(one)) &&
      !derived.has(one.kind) &&
      one.kind !== 'Pod' &&
      one.kind !== 'PersistentVolumeClaim',
  )
  expect(others.map(nameOf), `left: ${told}`).toEqual([])
  await until('its pods are ready', async () => {
    const pods = (await allOf(release)).filter(({ kind }) => kind === 'Pod')
    return (
      pods.length === wantedPods(await allOf(release)) &&
      pods.every((pod) => conditionOf(pod, 'Ready') === 'True')
    )
  })
}

function withoutReplicas({ spec, ...rest }: KubernetesObject): object {
  return { ...rest, spec: { ...spec, replicas: undefined } }
}

function wantedPods(live: readonly KubernetesObject[]): number {
  return live
    .filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')
    .reduce((sum, { spec }) => sum + Number(spec?.['replicas']), 0)
}

async function replicasOf(release: Release): Promise<object> {
  const sets = (await allOf(release)).filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')
  return Object.fromEntries(sets.map(({ kind, spec }) => [kind, spec?.['replicas']]))
}

async function podsOf(release: Release): Promise<KubernetesObject[]> {
  return (await allOf(release)).filter(({ kind }) => kind === 'Pod')
}

/** Returns the pods of a release without those of the Jobs. */
async function rolePodsOf(release: Release): Promise<KubernetesObject[]> {
  return (await podsOf(release)).filter(({ metadata }) => !/topics|user-key/.test(metadata.name))
}

function uidOf({ metadata }: KubernetesObject): string {
  return metadata.uid
}

function nameOf({ kind, metadata }: KubernetesObject): string {
  return `${kind} ${metadata.name}`
}

let namespacedKinds: Promise<string> | undefined

/** Returns all objects of a release, whatever their kind, except events and Endpoints. */
async function allOf({ name, namespace }: Release): Promise<KubernetesObject[]> {
  namespacedKinds ??= kubernetes
    .kubectl(['api-resources', '--namespaced', '--verbs=list', '-o', 'name'])
    .then(({ text }) =>
      text
        .trim()
        .split('\n')
        .filter((kind) => !/^(events|endpoints$)/.test(kind))
        .join(','),
    )
  return kubernetes.get([await namespacedKinds, '-n', namespace, '-l', `app.kubernetes.io/instance=${name}`])
}

/** Returns the kind and the name of each object of a release that its namespace still has. */
async function leftOf(release: Release): Promise<string[]> {
  return (await allOf(release)).map(nameOf)
}
