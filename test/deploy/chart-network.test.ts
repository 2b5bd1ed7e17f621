import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { chart, ofName, render, renderNotes } from './render.ts'
import { installTools, type Tools } from './tools.ts'

type Port = { port: number; protocol: string }
type Rule = { ports?: Port[]; to?: object[] }

let tools: Tools

beforeAll(async () => {
  tools = await installTools()
})

const setOf = (name: string): string => join(chart, `ci/${name}-values.yaml`)

/** Returns the egress rules of the NetworkPolicy of each component, by component. */
async function egressOf(
  components: readonly string[],
  ...args: readonly string[]
): Promise<Map<string, Rule[]>> {
  const resources = await render(tools, ...args)
  return new Map(
    components.map((component) => {
      const { egress }: { egress: Rule[] } = Object(ofName(resources, 'NetworkPolicy', `-${component}`).spec)
      return [component, egress]
    }),
  )
}

function toPort(rules: readonly Rule[], port: number): Rule[] {
  return rules.filter(({ ports = [] }) => ports.some((one) => one.port === port && one.protocol === 'TCP'))
}

describe('the network lets', () => {
  test('all pods ask for names, also where resolvers listen on 5353', async () => {
    for (const [, rules] of await egressOf(['worker', 'gateway', 'topics']))
      for (const port of [53, 5353]) {
        const [rule] = toPort(rules, port)
        // The DNS resolver is in the first of these namespaces in most clusters, and in the second in
        // OpenShift. OpenShift's resolver listens on port 5353.
        for (const name of ['kube-system', 'openshift-dns'])
          expect(rule?.to).toContainEqual({
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
          })
      }
    const only53 = await egressOf(['worker'], '--set', 'networkPolicy.dns.ports={53}')
    expect(toPort(only53.get('worker') ?? [], 5353)).toEqual([])
  })

  test.each([
    { url: 'https://registry.example', port: 443 },
    { url: 'http://registry.example', port: 80 },
    { url: 'http://registry:8081', port: 8081 },
    { url: 'https://[2001:db8::1]:8082/apis', port: 8082 },
    { url: 'https://[2001:db8::1]', port: 443 },
  ])(
    'those who decode framed values ask the registry at the port of its URL: $url',
    async ({ url, port }) => {
      const roles = ['worker', 'log', 'admin', 'gateway', 'topics']
      const egress = await egressOf(roles, '-f', setOf('operators'), '--set', `registry.url=${url}`)
      const toRegistry = roles.map((role) => [role, toPort(egress.get(role) ?? [], port).length])
      expect(toRegistry).toEqual([
        ['worker', 1],
        ['log', 1],
        ['admin', 1],
        ['gateway', 0],
        ['topics', 0],
      ])
    },
  )

  test('a port that is named win over that of the URL', async () => {
    const given = 'registry.url=https://registry.example,networkPolicy.registry.ports={9000}'
    const worker = (await egressOf(['worker'], '--set', given)).get('worker') ?? []
    expect(toPort(worker, 9000)).toHaveLength(1)
    expect(toPort(worker, 443)).toEqual([])
  })

  test.each([
    { set: 'settings.SLUICE_DELIVERY_PROXY=http://me:secret@proxy.internal:8888', port: 8888 },
    { set: 'settings.SLUICE_DELIVERY_PROXY=http://proxy.internal:3128', port: 3128 },
    { set: 'proxy.existingSecret=proxy-url,networkPolicy.proxy.ports={8888}', port: 8888 },
  ])(
    'workers and the admin API alone reach the proxy, however its URL is given: $set',
    async ({ set, port }) => {
      const on = ['--set', 'admin.enabled=true,admin.tokens.existingSecret=tokens']
      const egress = await egressOf(['worker', 'admin', 'gateway'], ...on, '--set', set)
      expect(toPort(egress.get('worker') ?? [], port)).toHaveLength(1)
      expect(toPort(egress.get('admin') ?? [], port)).toHaveLength(1)
      expect(toPort(egress.get('gateway') ?? [], port)).toEqual([])
    },
  )

  const everybody = ['worker', 'gateway', 'log', 'admin', 'topics']
  const operators = ['-f', setOf('operators')]

  test('every role log in to Kafka with tokens, at the port of the token URL', async () => {
    const given = [
      'kafka.ssl=true,kafka.sasl.mechanism=oauthbearer,kafka.sasl.existingSecret=login',
      'settings.SLUICE_KAFKA_OAUTH_TOKEN_URL=https://login.example:8444/token',
    ].join(',')
    for (const [role, rules] of await egressOf(everybody, ...operators, '--set', given))
      expect([role, toPort(rules, 8444).length]).toEqual([role, 1])
  })

  test('every role log in by IAM: at STS, and at the agent of EKS', async () => {
    const given = [
      'kafka.ssl=true,kafka.sasl.mechanism=aws-iam,settings.SLUICE_KAFKA_AWS_REGION=eu-central-1',
      'networkPolicy.token.to[0].ipBlock.cidr=10.40.0.0/24',
    ].join(',')
    for (const [role, rules] of await egressOf(everybody, ...operators, '--set', given)) {
      const [sts] = toPort(rules, 443)
      expect([role, sts?.to]).toEqual([role, [{ ipBlock: { cidr: '10.40.0.0/24' } }]])
      const [agent] = toPort(rules, 80)
      expect(agent?.to).toContainEqual({ ipBlock: { cidr: '169.254.170.23/32' } })
    }
  })

  test('every role reach the collector of traces that its variables name', async () => {
    const given = 'extraEnv=[{"name":"OTEL_EXPORTER_OTLP_ENDPOINT","value":"http://collector.tracing:4318"}]'
    for (const [role, rules] of await egressOf(everybody, ...operators, '--set-json', given))
      expect([role, toPort(rules, 4318).length]).toEqual([role, 1])
  })

  test('the delivery log and the admin API reach ClickHouse, and the latter no index then', async () => {
    const egress = await egressOf(['log', 'admin', 'worker'], '-f', setOf('clickhouse'))
    const counts = [...egress].map(([role, rules]) => [
      role,
      toPort(rules, 8443).length,
      toPort(rules, 9410).length,
    ])
    expect(counts).toEqual([
      ['log', 1, 0],
      ['admin', 1, 0],
      ['worker', 0, 0],
    ])
  })
})

describe('the notes warn', () => {
  test('where any address can be reached at Kafka’s ports, or at those of another server', async () => {
    const notes = await renderNotes(tools, '--set', 'registry.url=https://registry.example')
    expect(notes).toContain('networkPolicy.kafka.to is empty')
    expect(notes).toContain(
      'networkPolicy.registry.to is empty: the pods of worker may reach any address at port 443',
    )
  })

  test('of the pods that this release has, and of no others', async () => {
    const notes = await renderNotes(
      tools,
      '--set',
      'registry.url=https://registry.example,kafka.sasl.mechanism=aws-iam,gateway.enabled=false',
      '--set',
      'admin.enabled=true,admin.tokens.existingSecret=tokens',
      '--set',
      'deliveryLog.index.enabled=true,deliveryLog.existingSecret=log',
    )
    expect(notes).toContain('networkPolicy.registry.to is empty: the pods of worker, log, admin may')
    expect(notes).toContain('networkPolicy.token.to is empty: the pods of worker, log, admin, topics may')
  })

  test('not where it is said where these are, or no policy is made', async () => {
    expect(await renderNotes(tools, '-f', setOf('production'))).not.toContain('WARNING')
    expect(await renderNotes(tools, '--set', 'networkPolicy.enabled=false')).not.toContain('WARNING')
  })
})
