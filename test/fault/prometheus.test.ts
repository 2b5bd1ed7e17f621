import { spawn } from 'node:child_process'
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { boards } from '../../scripts/dashboard-panels.ts'
import { freePorts } from '../../src/development/ports.ts'
import { newIds, type Scene, setScene } from '../e2e/scene.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { ensureCommands } from '../support/debian.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'

const root = resolve(import.meta.dirname, '../..')
const key = 'KEY'

let receiver: CountingReceiver
let scene: Scene
let worker: SluiceProcess
let gateway: SluiceProcess
let prometheus: Prometheus

/** A worker and a gateway with messages that are delivered, that fail, that nobody wants, and that repeat, and a Prometheus that reads both. */
beforeAll(async () => {
  ensureCommands({ prometheus: 'prometheus', promtool: 'prometheus' })
  receiver = await startCountingReceiver()
  await receiver.behave('/failing', { status: 500 })
  await receiver.behave('/gone', { status: 404 })
  const destination = (id: string) => ({
    id,
    sources: ['shop'],
    hooks: [{ id: 'main', url: receiver.url(`/${id}`) }],
  })
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop', writeKeys: [key] }, { id: 'unheard' }],
      destinations: ['healthy', 'failing', 'gone'].map(destination),
    },
    variables: {
      SLUICE_RETRY_LADDER: '1s,1h',
      SLUICE_RETRY_THEN: '1h',
    },
  })
  worker = await startSluice(scene.variables)
  gateway = await startSluice(scene.variables, { role: 'gateway' })
  prometheus = await startPrometheus([worker.httpPort, gateway.httpPort])
}, 180_000)

afterAll(async () => {
  await prometheus.stop()
  await worker.kill()
  await gateway.kill()
  scene.close()
  await receiver.stop()
})

describe('a real Prometheus', () => {
  test(
    'has data for every query of every dashboard, of a run with faults',
    { timeout: 300_000 },
    async () => {
      const panels = boards.flatMap(({ id, panels: all }) => all.map((panel) => ({ id, panel })))
      const queries = panels.flatMap(({ id, panel }) =>
        panel.queries.map(({ expr }) => ({ where: `${id}: ${panel.title}`, expr: filledIn(expr) })),
      )
      await until(
        'all have data',
        async () => {
          await sendAllKinds()
          const without = []
          for (const { where, expr } of queries) if ((await prometheus.ask(expr)) === 0) without.push(where)
          if (without.length > 0) throw new Error(without.join(', '))
          return true
        },
        { timeoutMs: 240_000, everyMs: 3_000 },
      )
      expect(queries.length).toBeGreaterThan(60)
    },
  )

  test('evaluates every rule without a fault', async () => {
    const evaluated = await until('all were evaluated', async () => {
      const rules = await prometheus.rules()
      return rules.every(({ health }) => health !== 'unknown') ? rules : undefined
    })
    expect(evaluated.length).toBeGreaterThan(60)
    expect(evaluated.filter(({ health }) => health !== 'ok')).toEqual([])
  })

  test('fires for an endpoint that fails for good', { timeout: 120_000 }, async () => {
    const fired = 'count(ALERTS{alertname="SluiceDeadLetters",alertstate="firing",reason="failed_for_good"})'
    await until('it fires', async () => (await prometheus.ask(fired)) > 0, { timeoutMs: 90_000 })
    expect(await prometheus.ask('ALERTS{alertname="SluiceNoWorker"}')).toBe(0)
    expect(await prometheus.ask('ALERTS{alertname="SluiceFaults"}')).toBe(0)
  })
})

async function sendAllKinds(): Promise<void> {
  const [id] = newIds(1)
  for (const messageId of [id, id]) {
    await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Basic ${btoa(`${key}:`)}` },
      body: JSON.stringify({ userId: 'u', event: 'Order Completed', messageId }),
    })
  }
  // Nothing that can be delivered.
  await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Basic ${btoa(`${key}:`)}` },
    body: JSON.stringify({ event: 5 }),
  })
  await scene.send('nobody', newIds(1))
  await scene.send('unheard', newIds(1))
  await scene.send('shop', newIds(3))
}

/** As Grafana does it. */
function filledIn(expr: string): string {
  return expr.replaceAll('$namespace', '.*').replaceAll('$__rate_interval', '30s')
}

type Prometheus = {
  /** How many series a query has that are numbers. */
  ask(expr: string): Promise<number>
  rules(): Promise<{ name: string; health: string; lastError?: string }[]>
  stop(): Promise<void>
}

async function startPrometheus(ports: readonly number[]): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'prometheus-'))
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '2s' },
    rule_files: globSync('deploy/prometheus/*.rules.yaml', { cwd: root }).map((file) => join(root, file)),
    scrape_configs: [
      { job_name: 'sluice', static_configs: [{ targets: ports.map((port) => `127.0.0.1:${port}`) }] },
    ],
  }
  const file = join(folder, 'prometheus.yml')
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(config))
  const [port = 0] = await freePorts(1)
  const args = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]
  const child = spawn('prometheus', args, { stdio: 'ignore' })
  const exited = new Promise((resolveExit) => child.once('exit', resolveExit))
  const url = (path: string) => `http://127.0.0.1:${port}${path}`
  await until('Prometheus is ready', async () => (await fetch(url('/-/ready'))).ok)
  return {
    async ask(expr) {
      const response = await fetch(url('/api/v1/query'), {
        method: 'POST',
        body: new URLSearchParams({ query: expr }),
      })
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the format of its API
      const { data, error } = (await response.json()) as {
        data?: { result: { value: [number, string] }[] }
        error?: string
      }
      if (data === undefined) throw new Error(`${expr}: ${error}`)
      return data.result.filter(({ value: [, value] }) => value !== 'NaN').length
    },
    async rules() {
      const response = await fetch(url('/api/v1/rules'))
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the format of its API
      const { data } = (await response.json()) as {
        data: { groups: { rules: { name: string; health: string; lastError?: string }[] }[] }
      }
      return data.groups.flatMap(({ rules: all }) => all)
    },
    async stop() {
      child.kill('SIGKILL')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
