import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { chart, helmTemplate } from './render.ts'
import { installTools, type Tools } from './tools.ts'

/**
 * Tests of the number of pods that an upgrade asks for. The number depends on the objects that Helm finds in
 * the cluster.
 */

let tools: Tools

beforeAll(async () => {
  tools = await installTools()
})

type Rendered = {
  kind: string
  metadata: { annotations?: Record<string, string> }
  spec: { replicas?: number }
}

const minimal = join(chart, 'ci/minimal-values.yaml')
const scaling = 'worker.autoscaling.enabled=true,gateway.autoscaling.enabled=true'
const mark = { 'sluice/counted-by': 'autoscaler' }

describe('where an autoscaler counts the pods', () => {
  test('an install says no number, and upgrades and rollbacks between its revisions change none', async () => {
    const first = await upgraded({}, [])
    expect(first.map(countOf)).toEqual([undefined, undefined])
    expect(first.map(({ metadata }) => metadata.annotations)).toEqual([mark, expect.objectContaining(mark)])
    expect((await upgraded(live(5, mark))).map(countOf)).toEqual([undefined, undefined])
  })

  test('an upgrade keeps the number of pods where an earlier revision has said one', async () => {
    expect((await upgraded(live(5))).map(countOf)).toEqual([5, 5])
    expect((await upgraded(live(1))).map(countOf)).toEqual([2, 1])
  })

  test('an upgrade starts workers that were stopped: at 0 an autoscaler does nothing', async () => {
    expect((await upgraded(live(0, mark))).map(countOf)).toEqual([2, 1])
  })

  test('pods that were left without their StatefulSet go on', async () => {
    const names = ['release-sluice-worker-0', 'release-sluice-worker-11', 'another-release-sluice-worker-20']
    const items = names.map((name) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name } }))
    const pods = { '/api/v1/namespaces/sluice/pods': { apiVersion: 'v1', kind: 'PodList', items } }
    const [, workers] = await upgraded(pods)
    expect(workers).toMatchObject({ kind: 'StatefulSet', spec: { replicas: 12 } })
    expect(workers?.metadata.annotations).not.toMatchObject(mark)
  })
})

function countOf({ spec }: Rendered): number | undefined {
  return spec.replicas
}

/** Returns a Deployment and a StatefulSet with this number of pods, by their paths at an API server. */
function live(replicas: number, annotations: object = {}): Record<string, object> {
  const of = (kind: string, name: string) => {
    const metadata = { name, namespace: 'sluice', annotations }
    const path = `/apis/apps/v1/namespaces/sluice/${kind.toLowerCase()}s/${name}`
    return [path, { apiVersion: 'apps/v1', kind, metadata, spec: { replicas } }]
  }
  return Object.fromEntries([
    of('Deployment', 'release-sluice-gateway'),
    of('StatefulSet', 'release-sluice-worker'),
  ])
}

/**
 * Returns the Deployment and the StatefulSet that Helm makes, in this order, if it finds these objects in the
 * cluster. `as` are Helm's options, by default those of an upgrade. An empty list means an install.
 */
async function upgraded(objects: Record<string, object>, as = ['--is-upgrade']): Promise<Rendered[]> {
  const kubeconfig = await serveApi(objects)
  const asked = ['--dry-run=server', '--kubeconfig', kubeconfig, ...as]
  const ran = await helmTemplate(tools, ['-f', minimal, '--set', scaling, ...asked])
  if (!ran.isOk) throw new Error(ran.text)
  const all = parseAllDocuments(ran.output).flatMap((document): Rendered[] => {
    const one: Rendered | null = document.toJS()
    return one === null ? [] : [one]
  })
  return ['Deployment', 'StatefulSet'].flatMap((kind) => all.filter((one) => one.kind === kind))
}

/** Returns the description of a kind, as an API server gives it. */
function resource(kind: string): object {
  return { name: `${kind.toLowerCase()}s`, kind, namespaced: true, verbs: ['get', 'list'] }
}

/**
 * Starts a server that answers Helm as an API server would. Returns the path of a kubeconfig with its
 * address.
 */
async function serveApi(objects: Record<string, object>): Promise<string> {
  const answers: Record<string, object> = {
    '/api/v1': { kind: 'APIResourceList', groupVersion: 'v1', resources: [resource('Pod')] },
    '/apis/apps/v1': {
      kind: 'APIResourceList',
      groupVersion: 'apps/v1',
      resources: [resource('Deployment'), resource('StatefulSet')],
    },
    '/api/v1/namespaces/sluice/pods': { apiVersion: 'v1', kind: 'PodList', items: [] },
    ...objects,
  }
  const missing = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }
  const server = createServer(({ url = '' }, response) => {
    const answer = answers[new URL(url, 'http://api').pathname]
    response.writeHead(answer === undefined ? 404 : 200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(answer ?? missing))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port }: { port: number } = Object(server.address())
  const folder = mkdtempSync(join(tmpdir(), 'sluice-api-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'kubeconfig')
  const cluster = { name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [cluster],
      users: [{ name: 'u', user: {} }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'c',
    }),
  )
  return file
}
