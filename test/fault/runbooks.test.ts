import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { chart } from '../deploy/render.ts'
import { installTools } from '../deploy/tools.ts'
import { startUp, type Up } from '../e2e/up-process.ts'
import { createAuthority } from '../support/certificates.ts'
import { writeKafkaScripts } from '../support/kafka-scripts.ts'
import { type Kubernetes, startKubernetes } from '../support/kubernetes.ts'
import { createRelease } from '../support/release.ts'
import { blocksOf, readRunbook, runbooks } from '../support/runbooks.ts'
import { type RunningRegistry, startSchemaRegistry } from '../support/schema-registry.ts'
import { until } from '../support/until.ts'

/** Somebody at 3 a.m. waits no longer. */
const hangsAfterMs = 60_000
const namespace = 'sluice'
const pod = 'sluice-worker-0'
const commands = [...new Set(runbooks.flatMap((file) => blocksOf(readRunbook(file), 'sh')))]

let folder: string
let up: Up
let kubernetes: Kubernetes
let registry: RunningRegistry
let server: ReturnType<typeof createServer>
let env: NodeJS.ProcessEnv

/** `sluice up` with its Kafka, a release of the chart whose pods show what `sluice up` says, a registry, and a server with a certificate. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-runbooks-'))
  const identity = createAuthority('somebody').issue({ names: ['localhost'] })
  writeFileSync(join(folder, 'client.pem'), identity.cert)
  server = createServer(identity, (_request, response) => response.end())
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const source = { id: 'shop', writeKeys: ['shop-key'] }
  // A hook that shows a certificate that nobody trusts.
  const refused = { id: 'crm', sources: ['shop'], hooks: [{ url: `https://localhost:${serverPort()}/` }] }
  writeFileSync(join(folder, 'catalog.yaml'), stringify({ sources: [source], destinations: [refused] }))
  up = await startUp(folder)
  registry = await startSchemaRegistry()
  writeFileSync(join(folder, 'pod.log'), `${new Date().toISOString()} stdout F {"msg":"worker started"}\n`)
  const tools = await installTools()
  kubernetes = await startKubernetes({ definitions: tools.customResources, kwokConfig: podsOfRunbooks() })
  const release = await createRelease(kubernetes, tools, { namespace, name: 'sluice' })
  const installed = await release.upgrade(join(chart, 'ci/minimal-values.yaml'))
  if (!installed.isOk) throw new Error(installed.text)
  await kubernetes.kubectl(['config', 'set-context', '--current', '--namespace', namespace])
  await writeCommands()
}, 75 * 60_000)

afterAll(async () => {
  await kubernetes.stop()
  await registry.stop()
  server.close()
  await up.interrupt()
  rmSync(folder, { recursive: true, force: true })
}, 120_000)

test.each(commands)('%s', async (command) => {
  const { code, said } = await run(filledIn(command))
  expect(code, `it said: ${said}`).toBe(0)
})

test('the readiness that they ask for is that of the process', async () => {
  const asked = commands.find((command) => command.includes('/readyz')) ?? ''
  const { said } = await run(filledIn(asked))
  expect(said).toMatch(/^200 /m)
})

test('the dead letters that they show have their headers, which say what to change', async () => {
  const answer = await fetch(`${up.origin}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('shop-key:')}` },
    body: JSON.stringify({ userId: 'u', event: 'Hello' }),
  })
  expect(answer.status).toBe(200)
  const shows = commands.find((command) => command.startsWith('kafka-console-consumer.sh')) ?? ''
  const told = await until('it is a dead letter', async () => {
    const { said } = await run(filledIn(shows))
    return said.includes('failed_for_good') ? said : undefined
  })
  expect(told).toMatch(/origin:sluice\.events\/\d+\/\d+/)
  expect(told).toMatch(/detail:\w/)
})

/** What `kubectl logs` and `kubectl exec` do: the log is a file, and commands run on this machine. */
function podsOfRunbooks(): object[] {
  const file = join(folder, 'pod.log')
  return [
    kind('ClusterExec', { execs: [{ local: {} }] }),
    kind('ClusterLogs', { logs: [{ logsFile: file, previousLogsFile: file }] }),
  ]
}

function kind(name: string, spec: object): object {
  return { apiVersion: 'kwok.x-k8s.io/v1alpha1', kind: name, metadata: { name: 'all' }, spec }
}

/** What an operator has on the PATH. */
async function writeCommands(): Promise<void> {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  await writeKafkaScripts(bin)
  const main = resolve(chart, '../../../src/main.ts')
  writeFileSync(join(bin, 'sluice'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`)
  writeFileSync(join(bin, 'kubectl'), `#!/bin/sh\nexec '${kubernetes.program}' "$@"\n`)
  for (const name of ['sluice', 'kubectl']) chmodSync(join(bin, name), 0o755)
  env = {
    PATH: `${bin}:${process.env['PATH']}`,
    HOME: process.env['HOME'],
    KUBECONFIG: kubernetes.kubeconfig,
    SLUICE_KAFKA_BROKERS: up.broker,
    SLUICE_TOPICS_PARTITIONS: '3',
    SLUICE_TOPICS_DEVELOPMENT: 'true',
    SLUICE_RETRY_LADDER: '1s',
    SLUICE_RETRY_THEN: '1s',
    SLUICE_CATALOG_FILE: join(folder, 'catalog.yaml'),
    SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.0/8,::1/128',
  }
}

function serverPort(): number {
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port')
  return address.port
}

/** A page's words in capitals, as somebody fills them in. */
function filledIn(command: string): string {
  return command
    .replaceAll('HOST:443', `127.0.0.1:${serverPort()}`)
    .replaceAll('HOST', 'localhost')
    .replaceAll('BROKER', up.broker)
    .replaceAll('POD', pod)
    .replaceAll('FILE', join(folder, 'client.pem'))
    .replaceAll('REGISTRY', registry.url)
    .replaceAll('http://127.0.0.1:9400', /^ {2}metrics +(http:\S+)\/metrics/m.exec(up.said)?.[1] ?? '')
}

async function run(command: string): Promise<{ code: number | string | null; said: string }> {
  return new Promise((done) => {
    const child = execFile('sh', ['-c', command], { env, timeout: hangsAfterMs }, (error, stdout, stderr) =>
      done({ code: error === null ? 0 : (error.code ?? 'killed'), said: stdout + stderr }),
    )
    child.stdin?.end()
  })
}
