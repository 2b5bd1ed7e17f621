import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { readConfig } from '../../src/config/read.ts'
import { madeUserKey, planOf } from './kubelet.ts'
import {
  chart,
  helmTemplate,
  ofName,
  only,
  type Pod,
  podOf,
  podsOf,
  render,
  renderNotes,
  type Resource,
  valueOf,
} from './render.ts'
import { installTools, kubernetesVersions, runTool, type Tools } from './tools.ts'

const setOf = (name: string): string => join(chart, `ci/${name}-values.yaml`)
const valueSets = globSync('ci/*-values.yaml', { cwd: chart }).map((file) => join(chart, file))

let tools: Tools

beforeAll(async () => {
  tools = await installTools()
})

const rendered = (...args: readonly string[]) => render(tools, ...args)

const workerOf = (resources: readonly Resource[]): Pod => podOf(ofName(resources, 'StatefulSet', '-worker'))

describe('settings', () => {
  test.each(valueSets)(
    'that the chart sets itself are refused, and the right value is named: %s',
    async (set) => {
      const settings = new Set(variablesOf(await rendered('-f', set)))
      const own = await ownSettings(set)
      const computed = [...settings].filter((name) => name.startsWith('SLUICE_') && !own.has(name))
      expect(computed.length).toBeGreaterThan(8)
      const answers = await Promise.all(
        computed.map((name) => helmTemplate(tools, ['-f', set, '--set-string', `settings.${name}=x`])),
      )
      const unnamed = computed.filter(
        (name, place) =>
          answers[place]?.isOk !== false ||
          !new RegExp(`settings\\.${name}: the chart sets .* Use [a-z]\\S+`).test(answers[place].text),
      )
      expect(unnamed).toEqual([])
    },
  )

  test.each(['SLUICE_HTTP_PORT', 'SLUICE_GATEWAY_PORT', 'SLUICE_ADMIN_PORT', 'SLUICE_INDEX_PORT'])(
    'that move the port of a probe or a Service are refused: %s',
    async (name) => {
      const { isOk, text } = await helmTemplate(tools, [
        '-f',
        setOf('minimal'),
        '--set',
        `settings.${name}=9000`,
      ])
      expect(isOk).toBe(false)
      expect(text).toContain(`settings.${name}: containers, probes and Services of the chart have the port`)
    },
  )

  test.each([
    ['SLUICE_KAFKA_BROKERS', [], 'the chart sets SLUICE_KAFKA_BROKERS itself'],
    ['SLUICE_REGISTRY_URL', [], 'Use registry.url instead'],
    ['SLUICE_HTTP_PORT', [], 'have the port 9400'],
    ['SLUICE_LOG_LEVEL', ['--set', 'settings.SLUICE_LOG_LEVEL=debug'], 'settings has SLUICE_LOG_LEVEL'],
    [
      'NODE_EXTRA_CA_CERTS',
      ['--set', 'trustedCertificates.existingConfigMap=ca'],
      'the chart sets NODE_EXTRA_CA_CERTS itself',
    ],
  ])(
    'are refused in extraEnv too, where Kubernetes would keep one of the two: %s',
    async (name, args, said) => {
      const given = `extraEnv=[{"name":"${name}","value":"9000"}]`
      const minimal = ['-f', setOf('minimal')]
      const { isOk, text } = await helmTemplate(tools, [...minimal, ...args, '--set-json', given])
      expect(isOk).toBe(false)
      expect(text).toContain('extraEnv: ')
      expect(text).toContain(said)
    },
  )

  test('reach Sluice as they were written, also numbers of a million and more', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-settings-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const settings = {
      SLUICE_REPEATS_MESSAGES: 8_000_000,
      SLUICE_BREAKER_MIN_RESULTS: 20,
      SLUICE_LOG_ATTEMPTS: false,
      SLUICE_DELIVERY_TIMEOUT: '3s',
    }
    for (const [name, text] of [
      ['values.json', JSON.stringify({ settings })],
      [
        'values.yaml',
        `settings: { ${Object.entries(settings)
          .map(([key, value]) => `${key}: ${value}`)
          .join(', ')} }`,
      ],
    ] as const) {
      const file = join(folder, name)
      writeFileSync(file, text)
      const worker = workerOf(await rendered('-f', file))
      expect(Object.keys(settings).map((key) => valueOf(worker, key))).toEqual([
        '8000000',
        '20',
        'false',
        '3s',
      ])
    }
  })
})

/** Returns the names of the variables that come from the `settings` of a file of values. */
async function ownSettings(set: string): Promise<Set<string>> {
  const without = new Set(variablesOf(await rendered('-f', set, '--set', 'settings=null')))
  return new Set(variablesOf(await rendered('-f', set)).filter((name) => !without.has(name)))
}

function variablesOf(resources: readonly Resource[]): string[] {
  return podsOf(resources).flatMap(({ containers }) => containers[0].env.map(({ name }) => name))
}

test('the way to install it that its README shows keeps the catalog, which has secrets, in a Secret', async () => {
  const readme = readFileSync(join(chart, 'README.md'), 'utf8')
  const [, options = ''] = /^helm install sluice (\S[^`]*)^```$/m.exec(readme) ?? []
  const command = `${tools.helm} template sluice ${options.trim()} --kube-version ${kubernetesVersions.at(-1)}`
  const { isOk, output, text } = await runTool('sh', [
    '-c',
    `cd '${resolve(chart, '../../..')}' && ${command}`,
  ])
  expect(isOk ? '' : text).toBe('')
  const catalogs = parseAllDocuments(output).flatMap((document): string[] => {
    const { kind, spec }: Resource = Object(document.toJS())
    if (!['StatefulSet', 'Deployment'].includes(kind)) return []
    const { template }: { template: { spec: Pod } } = Object(spec)
    return template.spec.volumes
      .filter(({ name }) => name === 'catalog')
      .map((volume) => JSON.stringify(volume['secret']))
  })
  expect(catalogs).toEqual(Array.from({ length: 2 }, () => '{"secretName":"sluice-catalog"}'))
  expect(output).not.toContain('kind: ConfigMap')
})

const leaves = async (...args: readonly string[]) =>
  valueOf(workerOf(await rendered(...args)), 'SLUICE_KAFKA_LEAVE_ON_STOP')

describe('a worker', () => {
  test('leaves its group when it stops where an autoscaler takes pods away, or where values say so', async () => {
    const scaled = ['--set', 'worker.autoscaling.enabled=true']
    expect(await leaves()).toBe('false')
    expect(await leaves(...scaled)).toBe('true')
    expect(await leaves(...scaled, '--set', 'worker.leaveOnStop=false')).toBe('false')
    expect(await leaves('--set', 'worker.leaveOnStop=true')).toBe('true')
  })

  test('is known to the group by a prefix and its name, which no other cluster has', async () => {
    const worker = workerOf(
      await rendered('--set', 'worker.instanceIdPrefix=east-,worker.state.persistent=false'),
    )
    const folder = mkdtempSync(join(tmpdir(), 'sluice-prefix-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const resources = await rendered()
    const { env } = planOf(worker, {
      folder,
      podName: 'release-sluice-worker-3',
      resources: [...resources.map((one) => ({ ...one, data: one.data ?? {} })), madeUserKey],
    })
    const read = readConfig({ env })
    expect(read.ok && read.config.kafka.instanceId).toBe('east-release-sluice-worker-3')
  })
})

test('pods listen where values say, each at all of its ports', async () => {
  const resources = await rendered('-f', setOf('operators'), '--set', 'listenHost=::')
  const hosts = podsOf(resources).map(({ containers: [{ name, env }] }) => [
    name,
    ...env
      .filter((one) => one.name.endsWith('_HOST'))
      .map((one) => `${one.name}=${one.value}`)
      .toSorted(),
  ])
  expect(hosts.toSorted(([a = ''], [b = '']) => a.localeCompare(b))).toEqual([
    ['admin', 'SLUICE_ADMIN_HOST=::', 'SLUICE_HTTP_HOST=::'],
    ['gateway', 'SLUICE_GATEWAY_HOST=::', 'SLUICE_HTTP_HOST=::'],
    ['log', 'SLUICE_HTTP_HOST=::', 'SLUICE_INDEX_HOST=::'],
    ['topics', 'SLUICE_HTTP_HOST=::'],
    ['worker', 'SLUICE_HTTP_HOST=::'],
  ])
})

test('variables of the catalog are files of all pods that read the catalog, so that a change needs no restart', async () => {
  const set = ['catalog.variablesSecret=ours', 'admin.enabled=true', 'admin.tokens.existingSecret=tokens']
  const resources = await render(tools, ...set.flatMap((one) => ['--set', one]))
  for (const role of ['worker', 'gateway', 'admin']) {
    const kind = role === 'worker' ? 'StatefulSet' : 'Deployment'
    const { containers, volumes } = podOf(ofName(resources, kind, `-${role}`))
    const [{ env, volumeMounts, ...rest }] = containers
    const folder = env.find(({ name }) => name === 'SLUICE_CATALOG_VARIABLES_FOLDER')?.value
    const mount = volumeMounts.find(({ mountPath }) => mountPath === folder)
    expect(mount?.readOnly).toBe(true)
    expect(volumes.find(({ name }) => name === mount?.name)?.['secret']).toMatchObject({ secretName: 'ours' })
    expect(rest).not.toHaveProperty('envFrom')
  }
})

test('with keys, the catalog is in its topic: all pods know it, those that read it have the keys, and no file is mounted', async () => {
  const set = ['catalog.keysSecret=ours', 'admin.enabled=true', 'admin.tokens.existingSecret=tokens']
  const resources = await render(tools, ...set.flatMap((one) => ['--set', one]))
  expect(
    resources.some(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.endsWith('-catalog')),
  ).toBe(false)
  for (const pod of podsOf(resources)) {
    const [{ name, volumeMounts }] = pod.containers
    const mount = volumeMounts.find(({ mountPath }) => mountPath === '/etc/sluice-catalog-keys')
    const readsIt = ['worker', 'gateway', 'admin'].includes(name)
    expect([name, valueOf(pod, 'SLUICE_CATALOG_SOURCE')]).toEqual([name, 'topic'])
    expect([name, valueOf(pod, 'SLUICE_CATALOG_KEYS_FILE')]).toEqual([
      name,
      readsIt ? '/etc/sluice-catalog-keys/keys' : undefined,
    ])
    expect([name, mount !== undefined]).toEqual([name, readsIt])
    expect(pod.volumes.some((volume) => volume.name === 'catalog')).toBe(false)
  }
})

test('all pods that decode framed values log in to the registry: also those of replays and of `log find`', async () => {
  const given = 'registry.url=https://registry.example,registry.existingSecret=registry-login'
  const resources = await rendered('-f', setOf('operators'), '--set', given)
  const names = podsOf(resources).flatMap((pod) => {
    const { name, volumeMounts } = pod.containers[0]
    const isMounted = volumeMounts.some(({ mountPath }) => mountPath === '/etc/sluice-registry')
    const hasVolume = pod.volumes.some((volume) => volume.name === 'registry-login')
    expect([name, isMounted]).toEqual([name, hasVolume])
    return valueOf(pod, 'SLUICE_REGISTRY_URL') !== undefined && isMounted ? [name] : []
  })
  expect(names.toSorted()).toEqual(['admin', 'log', 'worker'])
})

test.each([
  ['none', false],
  ['aws-iam', false],
  ['scram-sha-512', true],
])('the Secret of the login to Kafka is in the pods only if it is used: %s', async (mechanism, isUsed) => {
  const given = [
    `kafka.ssl=true,kafka.sasl.mechanism=${mechanism},kafka.sasl.existingSecret=login`,
    'settings.SLUICE_KAFKA_AWS_REGION=eu-central-1',
  ].join(',')
  for (const { volumes, containers } of podsOf(await rendered('-f', setOf('operators'), '--set', given))) {
    const [{ volumeMounts }] = containers
    const isMounted = volumeMounts.some(({ mountPath }) => mountPath === '/etc/sluice-kafka/login')
    const hasVolume = volumes.some(({ name }) => name === 'kafka-login')
    expect({ isMounted, hasVolume }).toEqual({ isMounted: isUsed, hasVolume: isUsed })
  }
})

const more = (path: string) => [
  '--set-json',
  `${path === '' ? '' : `${path}.`}extraVolumes=[{"name":"more","secret":{"secretName":"more"}}]`,
  '--set-json',
  `${path === '' ? '' : `${path}.`}extraVolumeMounts=[{"name":"more","mountPath":"/more"}]`,
]
const holders = (resources: readonly Resource[]): string[] =>
  podsOf(resources)
    .filter(
      ({ containers: [{ volumeMounts }], volumes }) =>
        volumeMounts.some(({ mountPath }) => mountPath === '/more') &&
        volumes.some(({ name }) => name === 'more'),
    )
    .map(({ containers: [{ name }] }) => name)
    .toSorted()

describe('volumes of one’s own', () => {
  test.each([
    ['', ['admin', 'gateway', 'log', 'topics', 'worker']],
    ['worker', ['worker']],
    ['gateway', ['gateway']],
    ['admin', ['admin']],
    ['deliveryLog.index', ['log']],
    ['topics', ['topics']],
  ] as const)('of %s are in the pods of that', async (path, names) => {
    for (const set of ['operators', 'clickhouse'])
      expect(holders(await rendered('-f', setOf(set), ...more(path)))).toEqual(names)
  })
})

test('containers that people add are in each pod, after its own, and relabelings in the ServiceMonitor', async () => {
  const resources = await rendered('-f', setOf('additions'))
  const pods = podsOf(resources)
  expect(pods).toHaveLength(5)
  for (const { containers, ...pod } of pods) {
    const [own, ...added] = containers.map(({ name }) => name)
    expect([own, ...added]).toEqual(own === 'topics' ? ['topics'] : [own, 'logs'])
    expect(pod).toMatchObject({ initContainers: [{ name: 'proxy', restartPolicy: 'Always' }] })
  }
  const { metadata, spec } = only(resources, 'ServiceMonitor')
  expect(metadata).toMatchObject({
    labels: { release: 'prometheus' },
    annotations: { 'example.com/team': 'data' },
  })
  expect(spec['endpoints']).toEqual([
    expect.objectContaining({
      interval: '30s',
      scrapeTimeout: '10s',
      relabelings: [
        { sourceLabels: ['__meta_kubernetes_pod_label_app_kubernetes_io_instance'], targetLabel: 'release' },
        { sourceLabels: ['__meta_kubernetes_pod_node_name'], targetLabel: 'node' },
      ],
      metricRelabelings: [{ sourceLabels: ['__name__'], regex: 'nodejs_.+', action: 'drop' }],
    }),
  ])
})

const topicsJob = async (...args: readonly string[]) => ofName(await rendered(...args), 'Job', '-topics')
const jobOf = async (...args: readonly string[]) => podOf(await topicsJob(...args))

describe('the Job that makes the topics', () => {
  const places = [
    '--set-json',
    'worker.tolerations=[{"key":"pool","operator":"Exists"}]',
    '--set',
    'worker.nodeSelector.pool=sluice,worker.priorityClassName=high',
    '--set-json',
    'worker.affinity={"nodeAffinity":{}}',
  ]

  test('runs where workers may, unless values say otherwise', async () => {
    expect(await jobOf(...places)).toMatchObject({
      tolerations: [{ key: 'pool', operator: 'Exists' }],
      nodeSelector: { pool: 'sluice' },
      priorityClassName: 'high',
      affinity: { nodeAffinity: {} },
    })
    expect(
      await jobOf(...places, '--set', 'topics.nodeSelector.pool=jobs,topics.priorityClassName=low'),
    ).toMatchObject({ nodeSelector: { pool: 'jobs' }, priorityClassName: 'low' })
    expect(await jobOf()).not.toHaveProperty('tolerations')
  })

  test('has the annotations that keep sidecars out, and labels', async () => {
    const { spec } = await topicsJob(
      '--set-string',
      String.raw`topics.podAnnotations.sidecar\.istio\.io/inject=false,topics.podLabels.team=data`,
    )
    expect(spec['template']).toMatchObject({
      metadata: { annotations: { 'sidecar.istio.io/inject': 'false' }, labels: { team: 'data' } },
    })
  })
})

/** Returns the kinds of what is there for the Job that makes the key for users. */
const ofKey = (resources: readonly Resource[]): string[] =>
  resources.flatMap(({ kind, metadata: { name } }) => (name.endsWith('-user-key') ? [kind] : []))

describe('the key for users', () => {
  const own = ['--set', 'deliveryLog.existingSecret=ours,deliveryLog.userKeyKey=users']
  const admin = ['--set', 'admin.enabled=true,admin.tokens.existingSecret=tokens']

  test('is made once, by a Job before an install and an upgrade, so no Secret is rendered', async () => {
    const resources = await rendered()
    expect(ofKey(resources).toSorted()).toEqual([
      'Job',
      'NetworkPolicy',
      'Role',
      'RoleBinding',
      'ServiceAccount',
    ])
    expect(resources.filter(({ kind }) => kind === 'Secret')).toEqual([])
    expect(JSON.stringify(await rendered())).toBe(JSON.stringify(resources))
    for (const { kind, metadata } of resources)
      if (metadata.name.endsWith('-user-key'))
        expect([kind, metadata]).toEqual([
          kind,
          expect.objectContaining({
            annotations: expect.objectContaining({ 'helm.sh/hook': 'pre-install,pre-upgrade' }),
          }),
        ])
  })

  test('the Job may create Secrets in its namespace, and nothing else, by a token of ten minutes', async () => {
    const resources = await rendered()
    expect(ofName(resources, 'Role', '-user-key')).toMatchObject({
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['create'] }],
    })
    expect(ofName(resources, 'RoleBinding', '-user-key')).toMatchObject({
      roleRef: { kind: 'Role', name: 'release-sluice-user-key' },
      subjects: [{ kind: 'ServiceAccount', name: 'release-sluice-user-key', namespace: 'sluice' }],
    })
    const pod = podOf(ofName(resources, 'Job', '-user-key'))
    expect(pod.volumes.find(({ name }) => name === 'api-access')).toMatchObject({
      projected: { sources: [{ serviceAccountToken: { expirationSeconds: 600 } }, {}, {}] },
    })
    expect(pod.containers[0].args).toEqual([
      'make-user-key',
      '--secret',
      'release-sluice-user-key',
      '--access',
      '/var/run/secrets/sluice-api',
    ])
  })

  test('is that of the workers and of the admin API, and of no other pod', async () => {
    const resources = await rendered(...admin)
    const has = (kind: string, end: string): unknown[] => {
      const pod = podOf(ofName(resources, kind, end))
      return [
        valueOf(pod, 'SLUICE_ATTEMPTS_USER_KEY_FILE'),
        pod.volumes.find(({ name }) => name === 'user-key'),
      ]
    }
    const made = {
      name: 'user-key',
      secret: expect.objectContaining({ secretName: 'release-sluice-user-key' }),
    }
    for (const [kind, end] of [
      ['StatefulSet', '-worker'],
      ['Deployment', '-admin'],
    ] as const)
      expect(has(kind, end)).toEqual(['/etc/sluice-user-key/user-key', made])
    for (const [kind, end] of [
      ['Deployment', '-gateway'],
      ['Job', '-topics'],
    ] as const)
      expect(has(kind, end)).toEqual([undefined, undefined])
  })

  test('is not made where an own Secret has it, or where nobody wants it', async () => {
    const resources = await rendered(...own)
    expect(ofKey(resources)).toEqual([])
    expect(valueOf(workerOf(resources), 'SLUICE_ATTEMPTS_USER_KEY_FILE')).toBe('/etc/sluice-log/users')
    const without = await rendered('--set', 'deliveryLog.userKey.create=false')
    expect(ofKey(without)).toEqual([])
    expect(valueOf(workerOf(without), 'SLUICE_ATTEMPTS_USER_KEY_FILE')).toBeUndefined()
  })

  test('is made too where the own Secret has only the token of the index', async () => {
    const resources = await rendered(
      '--set',
      'deliveryLog.existingSecret=ours,deliveryLog.index.enabled=true',
    )
    expect(ofKey(resources)).toContain('Job')
    expect(valueOf(workerOf(resources), 'SLUICE_ATTEMPTS_USER_KEY_FILE')).toBe(
      '/etc/sluice-user-key/user-key',
    )
  })

  test('the Job reaches the API server, and not Kafka', async () => {
    const { egress }: { egress: { ports: { port: number }[]; to?: object[] }[] } = Object(
      ofName(await rendered(), 'NetworkPolicy', '-user-key').spec,
    )
    const ports = egress.map((rule) => [...new Set(rule.ports.map(({ port }) => port))])
    expect(ports).toEqual([
      [53, 5353],
      [443, 6443],
    ])
  })
})

describe('with ClickHouse', () => {
  const clickhouse = {
    SLUICE_CLICKHOUSE_URL: 'https://clickhouse.example:8443',
    SLUICE_CLICKHOUSE_USER: 'sluice',
    SLUICE_CLICKHOUSE_DATABASE: 'sluice',
    SLUICE_CLICKHOUSE_PASSWORD_FILE: '/etc/sluice-clickhouse/password',
  }
  const asksOf = (pod: Pod): object =>
    Object.fromEntries(Object.keys(clickhouse).map((name) => [name, valueOf(pod, name)]))

  test('the index has no volume, logs in with the Secret, and the admin API asks ClickHouse itself', async () => {
    const resources = await rendered('-f', setOf('clickhouse'))
    const log = ofName(resources, 'StatefulSet', '-log')
    expect(log.spec).not.toHaveProperty('volumeClaimTemplates')
    expect(podOf(log).volumes.map(({ name }) => name)).not.toContain('state')
    const admin = podOf(ofName(resources, 'Deployment', '-admin'))
    expect(asksOf(podOf(log))).toEqual(clickhouse)
    expect(asksOf(admin)).toEqual(clickhouse)
    expect(valueOf(admin, 'SLUICE_INDEX_URL')).toBeUndefined()
    for (const pod of [admin, podOf(log)])
      expect(pod.volumes).toContainEqual(
        expect.objectContaining({ secret: expect.objectContaining({ secretName: 'clickhouse-login' }) }),
      )
  })

  test('the notes name the command that makes its tables', async () => {
    expect(await renderNotes(tools, '-f', setOf('clickhouse'))).toContain(
      'kubectl -n sluice exec release-sluice-log-0 -- sluice log ddl --apply',
    )
  })
})

describe('scaling', () => {
  test('gives KEDA’s triggers what Prometheus wants to be asked with', async () => {
    const { spec } = only(await rendered('-f', setOf('production')), 'ScaledObject')
    const { triggers }: { triggers: object[] } = Object(spec)
    expect(triggers).toHaveLength(3)
    for (const trigger of triggers)
      expect(trigger).toMatchObject({
        metadata: { authModes: 'bearer' },
        authenticationRef: { name: 'prometheus', kind: 'ClusterTriggerAuthentication' },
      })
  })

  test('the notes tell the version of KEDA, and that nobody scrapes the pods', async () => {
    const on = ['--set', 'worker.autoscaling.enabled=true']
    const notes = await renderNotes(tools, ...on)
    expect(notes).toContain('KEDA scales the workers. It must have version 2.17 or later')
    expect(notes).toContain('metrics.serviceMonitor.enabled is false')
    const scraped = await renderNotes(tools, ...on, '--set', 'metrics.serviceMonitor.enabled=true')
    expect(scraped).not.toContain('serviceMonitor')
  })
})

test('gateways are replaced as many at once as values say', async () => {
  const { spec } = ofName(await rendered('--set', 'gateway.maxSurge=25%'), 'Deployment', '-gateway')
  expect(spec['strategy']).toEqual({ rollingUpdate: { maxUnavailable: 0, maxSurge: '25%' } })
  // Kubernetes refuses a Deployment that lets none of its pods be replaced.
  for (const none of ['0', '0%'])
    await expect(rendered('--set', `gateway.maxSurge=${none}`)).rejects.toThrow('maxSurge')
})

test('a tag of any length makes a label that Kubernetes takes', async () => {
  const pod = podsOf(await rendered('--set', `image.tag=${'a'.repeat(62)}-${'b'.repeat(20)}`))[0]
  expect(pod?.containers[0]).toMatchObject({ image: expect.stringMatching(/:a{62}-b{20}$/) })
  const { metadata } = Object(only(await rendered('--set', `image.tag=${'a'.repeat(62)}-b`), 'StatefulSet'))
  expect(metadata.labels['app.kubernetes.io/version']).toBe('a'.repeat(62))
})
