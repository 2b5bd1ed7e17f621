import { BlockList, isIPv4 } from 'node:net'
import { join, resolve } from 'node:path'
import { globSync } from 'node:fs'
import * as fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { createAddressPolicy, isRefusedHost } from '../../src/address/policy.ts'
import { readConfig } from '../../src/config/read.ts'
import {
  allPodsOf,
  chart,
  helmTemplate,
  ofName,
  only,
  type Pod,
  podOf,
  valueOf,
  podsOf,
  render,
  type Variable,
} from './render.ts'
import { notRecorded, told } from './rules-of-chart.ts'
import { installTools, type Tools } from './tools.ts'

const minimal = join(chart, 'ci/minimal-values.yaml')
const valueSets = globSync('ci/*-values.yaml', { cwd: chart }).map((file) => join(chart, file))

let tools: Tools

beforeAll(async () => {
  tools = await installTools()
})

const rendered = (...args: readonly string[]) => render(tools, ...args)

function variable(pod: Pod, name: string): Variable | undefined {
  return pod.containers[0]?.env.find((one) => one.name === name)
}

describe('a worker pod', () => {
  test.each([
    { cpu: ['--set', 'worker.resources.limits.cpu=4'], processes: '4' },
    { cpu: ['--set', 'worker.resources.limits.cpu=2500m'], processes: '2' },
    { cpu: ['--set', 'worker.resources.limits.cpu=500m'], processes: '1' },
    { cpu: ['--set', 'worker.resources.limits.cpu=64'], processes: '12' },
    { cpu: ['--set', 'worker.resources.limits=null,worker.resources.requests.cpu=3'], processes: '3' },
    { cpu: ['--set', 'worker.resources=null'], processes: '1' },
    { cpu: ['--set', 'worker.processes=5'], processes: '5' },
  ])('has $processes processes with $cpu', async ({ cpu, processes }) => {
    const pod = podOf(only(await rendered(...cpu), 'StatefulSet'))
    expect(variable(pod, 'SLUICE_WORKER_PROCESSES')?.value).toBe(processes)
  })

  test('is known to the group by its own name', async () => {
    const pod = podOf(only(await rendered(), 'StatefulSet'))
    expect(variable(pod, 'SLUICE_KAFKA_INSTANCE_ID')?.valueFrom).toEqual({
      fieldRef: { fieldPath: 'metadata.name' },
    })
  })
})

test('pods have the time to end that Sluice takes, and five seconds more', async () => {
  const resources = await rendered('--set', 'shutdownTimeout=2m,gateway.shutdownDelay=1500ms')
  expect(podOf(only(resources, 'StatefulSet')).terminationGracePeriodSeconds).toBe(125)
  expect(podOf(only(resources, 'Deployment')).terminationGracePeriodSeconds).toBe(127)
})

test.each(valueSets)('no pod has rights, a token, or variables of services: %s', async (set) => {
  const pods = allPodsOf(await rendered('-f', set))
  expect(pods.length).toBeGreaterThan(0)
  for (const pod of pods) {
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
    })
    // Those after the first one are what people have added.
    for (const { securityContext } of pod.containers.slice(0, 1))
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
  }
})

test.each(valueSets)('every file that a variable names is in a volume of its pod: %s', async (set) => {
  for (const { containers, volumes } of allPodsOf(await rendered('-f', set))) {
    const [{ env, volumeMounts }] = containers
    const named = env.filter(({ name, value = '' }) => /_(FILE|FOLDER|CERTS)$/.test(name) && value !== '')
    const folders = volumeMounts.map(({ mountPath }) => `${mountPath}/`)
    const outside = named.filter(
      ({ value = '' }) => !folders.some((folder) => `${value}/`.startsWith(folder)),
    )
    expect(outside).toEqual([])
    const state = new Set([...volumes.map(({ name }) => name), 'state'])
    expect(volumeMounts.filter(({ name }) => !state.has(name))).toEqual([])
  }
})

test.each(valueSets)('Sluice takes the settings that the chart gives it: %s', async (set) => {
  for (const { containers } of podsOf(await rendered('-f', set))) {
    // Those after the first one are what people have added.
    for (const { env } of containers.slice(0, 1)) {
      // Some values come from a Secret or from the pod. They may be any text, so the test fills in `told`.
      const given = env.map(({ name, value = 'told' }) => [
        name,
        name === 'SLUICE_DELIVERY_PROXY' ? 'http://p:1' : value.replace('$(POD_NAME)', 'told'),
      ])
      const read = readConfig({ env: Object.fromEntries(given) })
      expect(read.ok ? '' : read.message).toBe('')
    }
  }
})

/** Returns the series of the oldest due retry of a worker pod. */
function due(pod: string, values: string): ReturnType<typeof told> {
  return told('sluice_oldest_due_timestamp_seconds', `tier="1m",pod="${pod}"`, values)
}

describe('scaling', () => {
  const on = ['--set', 'worker.autoscaling.enabled=true']

  test.each([
    { partitions: 12, processes: 2, pods: 6 },
    { partitions: 12, processes: 5, pods: 3 },
    { partitions: 1, processes: 8, pods: 1 },
  ])(
    '$partitions partitions keep $pods pods of $processes processes busy',
    async ({ partitions, processes, pods }) => {
      const resources = await rendered(
        ...on,
        '--set',
        `topics.partitions=${partitions},worker.processes=${processes}`,
      )
      expect(only(resources, 'ScaledObject').spec).toMatchObject({
        minReplicaCount: 1,
        maxReplicaCount: pods,
      })
      expect(only(resources, 'StatefulSet').spec).not.toHaveProperty('replicas')
    },
  )

  test('asks for half of the cores and requests of its pods, for retries by time, and for nothing where nobody tells', async () => {
    const { spec } = only(await rendered(...on, '--set', 'worker.processes=4'), 'ScaledObject')
    const { triggers }: { triggers: { name: string; metadata: object }[] } = Object(spec)
    expect(triggers.map(({ name, metadata }) => [name, metadata])).toEqual([
      ['work', expect.objectContaining({ threshold: '2', ignoreNullValues: 'false' })],
      ['requests', expect.objectContaining({ threshold: '0.5', ignoreNullValues: 'false' })],
      ['overdue', expect.objectContaining({ threshold: '60', ignoreNullValues: 'false' })],
    ])
  })

  test('without KEDA has the same limits, of series that Prometheus records', async () => {
    const resources = await rendered(...on, '--set', 'worker.autoscaling.kind=hpa')
    const { spec } = only(resources, 'HorizontalPodAutoscaler')
    expect(spec).toMatchObject({
      minReplicas: 1,
      maxReplicas: 6,
      behavior: {
        scaleUp: { stabilizationWindowSeconds: 30 },
        scaleDown: { stabilizationWindowSeconds: 600 },
      },
    })
    const { metrics }: { metrics: { external: { metric: { name: string } } }[] } = Object(spec)
    const { groups }: { groups: { rules: { record: string }[] }[] } = Object(
      only(resources, 'PrometheusRule').spec,
    )
    const names = groups.flatMap(({ rules }) => rules.map(({ record }) => record))
    expect(metrics.map(({ external }) => external.metric.name).toSorted()).toEqual(names.toSorted())
  })

  const scaledByHpa = ['--set', 'worker.autoscaling.kind=hpa,kafka.topicPrefix=a.b.']
  /**
   * Series of two pods that use three cores together. The pods take 3,000 records a second of `events`, each
   * pod half of them. The records of the retry topic don't count.
   */
  const atWork = ['release-sluice-worker-0', 'release-sluice-worker-1'].flatMap((pod) => [
    told('process_cpu_seconds_total', `pod="${pod}"`, '0+90x5'),
    told('sluice_records_total', `pod="${pod}",topic="events"`, '0+90000x5'),
    told('sluice_records_total', `pod="${pod}",topic="retry.1m"`, '0+90000x5'),
    told('sluice_deliveries_in_flight', `pod="${pod}"`, '128+0x5'),
    told('sluice_deliveries_in_flight_limit', `pod="${pod}"`, '1024+0x5'),
  ])
  const ofOthers = [
    told('process_cpu_seconds_total', 'pod="release-sluice-gateway-5c9d-x2z"', '0+600x5'),
    told('process_cpu_seconds_total', 'pod="other-worker-0"', '0+600x5'),
    { series: 'sluice_consumer_lag_records{namespace="other",topic="a.b.events"}', values: '9000+0x5' },
    lag('topic="axb.events",partition="0",pod="release-sluice-worker-0"', 5_000),
    lag('topic="a.b.retry.1h",partition="0",pod="release-sluice-worker-0"', 5_000),
    lag('topic="a.b.audience-changes",partition="0",pod="release-sluice-worker-0"', 5_000),
    lag('topic="a.b.events",partition="0",pod="other-worker-0"', 5_000),
    told('sluice_oldest_due_timestamp_seconds', 'tier="1m",pod="other-worker-0"', '0+0x5'),
  ]

  test('its work is the cores in use and those that the lag takes beside, each partition counted once, and nothing parked, of others, or of a sync', async () => {
    expect(
      await notRecorded(
        tools,
        await rendered(...on, ...scaledByHpa),
        [
          ...atWork,
          ...ofOthers,
          lag('topic="a.b.events",partition="0",pod="release-sluice-worker-0"', 600_000),
          // The partition has just moved, so both pods report its lag.
          lag('topic="a.b.events",partition="0",pod="release-sluice-worker-1"', 70),
          lag('topic="a.b.replays",partition="0",pod="release-sluice-worker-0"', 300_000),
          told('sluice_oldest_due_timestamp_seconds', 'tier="1m",pod="release-sluice-worker-0"', '20+0x5'),
        ],
        [
          // The pods now use three cores. To take the 900,000 waiting records within 300 s, they need three
          // more.
          recorded('sluice_scaling_work_cores', 6),
          recorded('sluice_scaling_requests_pods', 0.25),
          recorded('sluice_scaling_overdue_seconds', 280),
        ],
      ),
    ).toBe('')
  })

  test('its work is that of the processes where nothing waits and nothing comes, and unknown where records wait that none take', async () => {
    const idle = atWork.map(({ series, values }) => ({
      series,
      values: series.startsWith('sluice_records_total') ? '9+0x5' : values,
    }))
    const resources = await rendered(...on, ...scaledByHpa)
    expect(
      await notRecorded(
        tools,
        resources,
        [...idle, ...ofOthers, lag('topic="a.b.events",partition="0",pod="release-sluice-worker-0"', 0)],
        [recorded('sluice_scaling_work_cores', 3), recorded('sluice_scaling_overdue_seconds', 0)],
      ),
    ).toBe('')
    const unknown = { expr: 'sluice_scaling_work_cores', eval_time: '5m', exp_samples: [] }
    expect(
      await notRecorded(
        tools,
        resources,
        [...idle, lag('topic="a.b.events",partition="0",pod="release-sluice-worker-0"', 10)],
        [unknown],
      ),
    ).toBe('')
    expect(await notRecorded(tools, resources, [...idle, ...ofOthers], [unknown])).toBe('')
  })

  test.each(['sluice_proxy_down', 'sluice_produce_stalled'])(
    'retries that are late for %s ask for no pod, and those of other workers do',
    async (stopped) => {
      const resources = await rendered(...on, ...scaledByHpa)
      const [first, second] = ['release-sluice-worker-0', 'release-sluice-worker-1']
      const oneStopped = [
        told(stopped, `pod="${first}"`, '1+0x5'),
        told(stopped, `pod="${second}"`, '0+0x5'),
        due(first, '0+0x5'),
      ]
      const unknown = { expr: 'sluice_scaling_overdue_seconds', eval_time: '5m', exp_samples: [] }
      expect(await notRecorded(tools, resources, oneStopped, [unknown])).toBe('')
      const late = [recorded('sluice_scaling_overdue_seconds', 200)]
      expect(await notRecorded(tools, resources, [...oneStopped, due(second, '100+0x5')], late)).toBe('')
    },
  )
})

// The admin API sends to endpoints too, because it tests destinations.
test.each(['worker', 'admin'])(
  'the network lets requests of the %s pods go where Sluice itself does, and nowhere else',
  async (component) => {
    const on = ['admin.enabled=true', 'admin.tokens.existingSecret=tokens'].flatMap((one) => ['--set', one])
    const policies = (await rendered(...on)).filter(
      ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name.endsWith(`-${component}`),
    )
    type Peer = { ipBlock?: { cidr: string; except?: string[] } }
    const egress: { to?: Peer[] }[] = policies.flatMap(({ spec }) => Object(spec)['egress'])
    const blocks = egress.flatMap(({ to = [] }) =>
      to.flatMap(({ ipBlock }) => (ipBlock?.except === undefined ? [] : [ipBlock])),
    )
    expect(blocks.map(({ cidr }) => cidr)).toEqual(['0.0.0.0/0', '2000::/3'])
    const denied = new BlockList()
    for (const range of blocks.flatMap(({ except = [] }) => except)) {
      const [address = '', bits] = range.split('/')
      denied.addSubnet(address, Number(bits), isIPv4(address) ? 'ipv4' : 'ipv6')
    }
    const globalUnicast = new BlockList()
    globalUnicast.addSubnet('2000::', 3, 'ipv6')
    const policy = createAddressPolicy([])
    fc.assert(
      fc.property(fc.ipV4(), (address) => denied.check(address) === isRefusedHost(address, policy)),
      { numRuns: 20_000 },
    )
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        // A network policy can't recognize an IPv4 address that is written as an IPv6 address. Such an address
        // isn't in `globalUnicast`, so it counts as not public.
        const isPublic = globalUnicast.check(address, 'ipv6') && !denied.check(address, 'ipv6')
        return !isPublic || !isRefusedHost(`[${address}]`, policy)
      }),
      { numRuns: 20_000 },
    )
  },
)

describe('for operators', () => {
  const values = ['-f', join(chart, 'ci/operators-values.yaml')]
  test('the admin API asks the index of the release, by the token of the same Secret', async () => {
    const resources = await rendered(...values)
    const [admin, log] = [
      podOf(ofName(resources, 'Deployment', '-admin')),
      podOf(ofName(resources, 'StatefulSet', '-log')),
    ]
    const service = ofName(resources, 'Service', '-log')
    expect(variable(admin, 'SLUICE_INDEX_URL')?.value).toBe(`http://${service.metadata.name}:9410`)
    for (const pod of [admin, log])
      expect(variable(pod, 'SLUICE_INDEX_TOKEN_FILE')?.value).toBe('/etc/sluice-log/token')
  })

  test('each pod sees only the keys that it uses', async () => {
    const resources = await rendered(...values)
    const keysOf = (kind: string, end: string): string[] => {
      const { volumes } = podOf(ofName(resources, kind, end))
      const [volume]: { secret: { items: { key: string }[] } }[] = Object(
        volumes.filter(({ name }) => name === 'delivery-log'),
      )
      return (volume?.secret.items ?? []).map(({ key }) => key)
    }
    expect(keysOf('StatefulSet', '-worker')).toEqual(['user-key'])
    expect(keysOf('StatefulSet', '-log')).toEqual(['token'])
    expect(keysOf('Deployment', '-admin')).toEqual(['token', 'user-key'])
  })

  test('the index is asked by the admin API, and by whoever is named, alone', async () => {
    const spec: { ingress: { ports: { port: string }[]; from?: object[] }[] } = Object(
      ofName(await rendered(...values), 'NetworkPolicy', '-log').spec,
    )
    const query = spec.ingress.filter(({ ports }) => ports[0]?.port === 'query')
    expect(query.map(({ from }) => from)).toEqual([
      [
        { podSelector: { matchLabels: { app: 'shell' } } },
        {
          podSelector: {
            matchLabels: {
              'app.kubernetes.io/component': 'admin',
              'app.kubernetes.io/instance': 'release',
              'app.kubernetes.io/name': 'sluice',
            },
          },
        },
      ],
    ])
  })

  test('neither is there by itself', async () => {
    const names = (await rendered()).map(({ metadata }) => metadata.name)
    expect(names.filter((name) => /-(admin|log)$/.test(name))).toEqual([])
  })
})

test.each([
  { given: 'worker.replica=3', said: 'replica' },
  { given: 'topics.partitions=0', said: 'partitions' },
  { given: 'settings.KAFKA_BROKERS=x', said: 'KAFKA_BROKERS' },
  { given: 'shutdownTimeout=soon', said: 'shutdownTimeout' },
])('a value that can only be a mistake is refused: $given', async ({ given, said }) => {
  const { isOk, text } = await helmTemplate(tools, ['-f', minimal, '--set', given])
  expect(isOk).toBe(false)
  expect(text).toContain(said)
})

test.each([
  { given: 'kafka.brokers=null', said: 'kafka.brokers is empty' },
  { given: 'gateway.ingress.enabled=true', said: 'gateway.ingress.hosts is empty' },
  { given: 'gateway.httpRoute.enabled=true', said: 'gateway.httpRoute.parentRefs is empty' },
  { given: 'kafka.sasl.mechanism=plain', said: 'kafka.sasl.existingSecret is empty' },
  { given: 'admin.enabled=true', said: 'admin.tokens.existingSecret is empty' },
  {
    given: 'admin.enabled=true,admin.tokens.existingSecret=t,admin.ingress.enabled=true',
    said: 'admin.publicUrl is empty',
  },
  {
    given:
      'admin.enabled=true,admin.tokens.existingSecret=t,admin.ingress.enabled=true,admin.publicUrl=https://ops.example.com',
    said: 'admin.ingress.tlsSecret is empty',
  },
  { given: 'deliveryLog.index.enabled=true', said: 'deliveryLog.existingSecret is empty' },
  { given: 'image.repository=', said: 'docker build -f deploy/Dockerfile -t REGISTRY/sluice:VERSION' },
])('what is missing is named: $given', async ({ given, said }) => {
  const { isOk, text } = await helmTemplate(tools, ['-f', minimal, '--set', given])
  expect(isOk).toBe(false)
  expect(text).toContain(said)
})

test('the console is reached by TLS, below the path of its public URL', async () => {
  const set = [
    'admin.enabled=true',
    'admin.tokens.existingSecret=tokens',
    'admin.publicUrl=https://ops.example.com/sluice',
    'admin.trustedProxies={10.0.0.0/8}',
    'admin.ingress.enabled=true',
    'admin.ingress.tlsSecret=ops-tls',
  ]
  const resources = await rendered(...set.flatMap((one) => ['--set', one]))
  expect(ofName(resources, 'Ingress', '-admin').spec).toMatchObject({
    tls: [{ hosts: ['ops.example.com'], secretName: 'ops-tls' }],
    rules: [{ host: 'ops.example.com', http: { paths: [{ path: '/sluice', pathType: 'Prefix' }] } }],
  })
  const pod = podOf(ofName(resources, 'Deployment', '-admin'))
  expect(valueOf(pod, 'SLUICE_ADMIN_PUBLIC_URL')).toBe('https://ops.example.com/sluice')
  expect(valueOf(pod, 'SLUICE_ADMIN_TRUSTED_PROXIES')).toBe('10.0.0.0/8')
})

test('a catalog in a file is taken as it is', async () => {
  const text = await helmTemplate(tools, [
    '-f',
    minimal,
    '--set-file',
    `catalog.file=${resolve(chart, '../../compose/catalog.yaml')}`,
  ])
  expect(text.text).toContain('writeKeys: [demo-write-key]')
  const indented = '   # Ours.\nsources:\n  - id: shop\n'
  const resources = await rendered('--set-json', `catalog.file=${JSON.stringify(indented)}`)
  expect(ofName(resources, 'ConfigMap', '-catalog').data).toEqual({ 'catalog.yaml': indented })
})

/** Returns a series of a consumer lag that stays the same, for promtool. */
function lag(labels: string, value: number) {
  return told('sluice_consumer_lag_records', labels, `${value}+0x5`)
}

/** Returns the expectation, for promtool, that a recorded series has this value after five minutes. */
function recorded(expr: string, value: number) {
  const labels = `${expr}{namespace="sluice",release="release"}`
  return { expr, eval_time: '5m', exp_samples: [{ labels, value }] }
}
