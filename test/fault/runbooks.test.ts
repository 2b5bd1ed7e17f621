import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { urlsDigestOf } from '../../src/catalog/auto-pause.ts'
import { chart } from '../deploy/render.ts'
import { installTools } from '../deploy/tools.ts'
import { startUp, type Up } from '../e2e/up-process.ts'
import { selfSigned } from '../support/certificates.ts'
import { writeKafkaScripts } from '../support/kafka-scripts.ts'
import { type Kubernetes, startKubernetes } from '../support/kubernetes.ts'
import { writePause } from '../support/pauses.ts'
import { createRelease } from '../support/release.ts'
import { linesOf, readRunbook, runbooks } from '../support/runbooks.ts'
import { type RunningRegistry, startSchemaRegistry } from '../support/schema-registry.ts'
import { until } from '../support/until.ts'

/** The time in milliseconds after which a command counts as hung. An operator at 3 a.m. waits no longer. */
const hangsAfterMs = 60_000
const namespace = 'sluice'
const pod = 'sluice-worker-0'
const commands = [...new Set(runbooks.flatMap((file) => linesOf(readRunbook(file), 'sh')))]

let folder: string
let up: Up
let kubernetes: Kubernetes
let registry: RunningRegistry
let server: ReturnType<typeof createServer>
let env: NodeJS.ProcessEnv

/**
 * Starts all that the runbooks need. This is `sluice up` with its Kafka and its catalog in a topic, a release
 * of the chart whose pods show a log from a file, a schema registry, and a server with a certificate.
 */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-runbooks-'))
  // Only a self-signed certificate makes a delivery fail for good.
  const identity = selfSigned({ names: ['localhost'] })
  writeFileSync(join(folder, 'client.pem'), identity.cert)
  server = createServer(identity, (_request, response) => response.end())
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  // Without a catalog file, the catalog is in the topic, as the commands that export and restore it need it.
  // Without automatic pauses, workers end one at once.
  up = await startUp(folder, { variables: { SLUICE_NOTICES_AUTO_PAUSE: '120h' } })
  registry = await startSchemaRegistry()
  writeFileSync(join(folder, 'pod.log'), `${new Date().toISOString()} stdout F {"msg":"worker started"}\n`)
  await writeCommands()
  const source = { id: 'shop', writeKeys: ['shop-key'] }
  const refused = { id: 'crm', sources: ['shop'], hooks: [{ url: hookUrl() }] }
  writeFileSync(join(folder, 'catalog.yaml'), stringify({ sources: [source], destinations: [refused] }))
  const imported = await run('sluice catalog import catalog.yaml')
  if (imported.code !== 0) throw new Error(imported.said)
  const tools = await installTools()
  kubernetes = await startKubernetes({ definitions: tools.customResources, kwokConfig: podsOfRunbooks() })
  const release = await createRelease(kubernetes, tools, { namespace, name: 'sluice' })
  const installed = await release.upgrade(join(chart, 'ci/minimal-values.yaml'))
  if (!installed.isOk) throw new Error(installed.text)
  writeCommand('kubectl', `${withInputOfFile()}exec '${kubernetes.program}' "$@"`)
  env['KUBECONFIG'] = kubernetes.kubeconfig
  await makeDeadLetter()
}, 75 * 60_000)

afterAll(async () => {
  await kubernetes.stop()
  await registry.stop()
  server.close()
  await up.interrupt()
  rmSync(folder, { recursive: true, force: true })
})

test.each(commands)('%s', async (command) => {
  if (/destinations (paused|resume)/.test(command)) await pauseAsWorker()
  const { code, said } = await run(filledIn(command))
  // A test of the destination fails, because its certificate isn't trusted.
  expect(code, `it said: ${said}`).toBe(command.includes('sluice destinations test') ? 1 : 0)
})

test('a test of a destination says why the endpoint fails', async () => {
  const tests = commands.find((command) => command.includes('sluice destinations test')) ?? ''
  expect((await run(filledIn(tests))).said).toMatch(
    /certificate DEPTH_ZERO_SELF_SIGNED_CERT.*A delivery would become a dead letter\./s,
  )
})

test('the readiness that they ask for is that of the process', async () => {
  const asked = commands.find((command) => command.includes('/readyz')) ?? ''
  const { said } = await run(filledIn(asked))
  expect(said).toMatch(/^200 /m)
})

test('the dead letters that they show have their headers, which say what to change', async () => {
  const shows = commands.find((command) => command.startsWith('kafka-console-consumer.sh')) ?? ''
  const told = await until('it is a dead letter', async () => {
    const { said } = await run(filledIn(shows))
    return said.includes('failed_for_good') ? said : undefined
  })
  expect(told).toMatch(/origin:sluice\.events\/\d+\/\d+/)
  expect(told).toMatch(/detail:\w/)
})

test('what could be sent again is counted, and what failed is found', async () => {
  const counts = commands.find((command) => command.includes('--destination "$DESTINATION" --from')) ?? ''
  expect((await run(counts)).said).toMatch(/\b1\b/)
  const searches = commands.find((command) => command.includes('sluice log search --destination')) ?? ''
  expect((await run(searches)).said).toMatch(/\bcrm\b.*certificate/)
})

/** Sends a message whose delivery fails for good. Waits until the dead letter is in the delivery log. */
async function makeDeadLetter(): Promise<void> {
  await until('the gateway knows the key of the source', isSent)
  await until('it is in the delivery log', async () => {
    const { code, said } = await run('sluice log search --reason failed_for_good')
    return code === 0 && said.includes('failed_for_good')
  })
}

async function isSent(): Promise<boolean> {
  const answer = await fetch(`${up.origin}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('shop-key:')}` },
    body: JSON.stringify({ userId: 'u', event: 'Hello' }),
  })
  return answer.ok
}

/**
 * Returns the part of kwok's configuration for `kubectl logs` and `kubectl exec`. The log of every pod is a
 * file, and commands run on this machine.
 */
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

/**
 * Writes the commands that the runbooks use, and puts them on the PATH. An operator has most of them. The
 * command `sluice` belongs to a pod. It runs in the folder of `sluice up`, whose settings it finds there.
 * `kubectl exec` also uses the PATH of this process.
 */
async function writeCommands(): Promise<void> {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  await writeKafkaScripts(bin)
  const main = resolve(chart, '../../../src/main.ts')
  writeCommand('sluice', `cd '${folder}' && exec '${process.execPath}' '${main}' "$@"`)
  writeFileSync(join(folder, 'client.properties'), '')
  process.env['PATH'] = `${bin}:${process.env['PATH']}`
  env = {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    // Variables that an operator sets after reading the page about variables.
    NAMESPACE: namespace,
    RELEASE: 'sluice',
    POD: pod,
    INDEX: pod,
    WORKER: pod,
    BROKER: up.broker,
    CLIENT: join(folder, 'client.properties'),
    DESTINATION: 'crm',
    SINCE: new Date(Date.now() - 3_600_000).toISOString(),
    CERTIFICATE: join(folder, 'client.pem'),
    ENDPOINT: 'localhost',
    REGISTRY: registry.url,
  }
}

function writeCommand(name: string, line: string): void {
  const file = join(folder, 'bin', name)
  writeFileSync(file, `#!/bin/sh\n${line}\n`)
  chmodSync(file, 0o755)
}

/**
 * kwok gives the commands of pods their standard input, and never its end. Returns the lines of a script that lets a
 * command with `exec -i` read a file instead.
 */
function withInputOfFile(): string {
  const file = join(folder, 'input')
  return `case " $* " in *' exec -i '*)
  cat > '${file}'
  for word; do
    shift
    case "$word" in
      -i) ;;
      --) set -- "$@" -- sh -c 'exec "$0" "$@" < ${file}' ;;
      *) set -- "$@" "$word" ;;
    esac
  done
esac
`
}

/** Pauses the destination as a worker does if all its URLs have failed for too long. */
async function pauseAsWorker(): Promise<void> {
  const hook = { id: '', url: hookUrl(), origin: '', path: '', headers: [] }
  const urls = urlsDigestOf({ hooks: [hook] })
  await writePause('crm', { prefix: 'sluice.', brokers: [up.broker], urls })
}

function hookUrl(): string {
  return `https://localhost:${serverPort()}/`
}

function serverPort(): number {
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port')
  return address.port
}

/** Returns a command with the ports of this run. */
function filledIn(command: string): string {
  return command
    .replaceAll('$ENDPOINT:443', `127.0.0.1:${serverPort()}`)
    .replaceAll('http://127.0.0.1:9400', /^ {2}metrics +(http:\S+)\/metrics/m.exec(up.said)?.[1] ?? '')
}

async function run(command: string): Promise<{ code: number | string | null; said: string }> {
  return new Promise((done) => {
    // Some commands write files.
    const options = { cwd: folder, env, timeout: hangsAfterMs }
    const child = execFile('sh', ['-c', command], options, (error, stdout, stderr) =>
      done({ code: error === null ? 0 : (error.code ?? 'killed'), said: stdout + stderr }),
    )
    child.stdin?.end()
  })
}
