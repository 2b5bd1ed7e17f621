import { spawn } from 'node:child_process'
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePorts } from '../../src/development/free-ports.ts'
import { until } from './until.ts'

const root = resolve(import.meta.dirname, '../..')

/**
 * A real Prometheus with the rules of `deploy/prometheus`. Queries may use the variables of the dashboards.
 */
export type Prometheus = {
  /** Returns the number of series in a query's result whose value is a number. */
  ask(expr: string): Promise<number>
  /** Returns the values of each series between two times (epoch seconds), one every `stepS` seconds. */
  range(expr: string, from: number, until: number): Promise<Series[]>
  /** Returns the names of all metrics that have had a value. */
  names(): Promise<ReadonlySet<string>>
  rules(): Promise<{ name: string; health: string; lastError?: string }[]>
  stop(): Promise<void>
}

export type Series = { labels: Record<string, string>; points: (readonly [atS: number, value: number])[] }

const rateInterval = '30s'
/** The time between two values of a series, in seconds. */
export const stepS = 5

/** Replaces the variables of the dashboards, as Grafana does. */
function filledIn(expr: string): string {
  return expr
    .replaceAll(/\$(namespace|release|pod|destination)\b/g, '.*')
    .replaceAll('$__rate_interval', rateInterval)
}

/** Starts a Prometheus that scrapes these ports of 127.0.0.1, by the names of their instances, every second. */
export async function startPrometheus(ports: Readonly<Record<string, number>>): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'prometheus-'))
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '2s' },
    rule_files: globSync('deploy/prometheus/*.rules.yaml', { cwd: root }).map((file) => join(root, file)),
    scrape_configs: [
      {
        job_name: 'sluice',
        static_configs: Object.entries(ports).map(([instance, port]) => ({
          targets: [`127.0.0.1:${port}`],
          labels: { instance },
        })),
      },
    ],
  }
  const file = join(folder, 'prometheus.yml')
  // A YAML file may hold JSON.
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

  async function query<T>(path: string, fields: Record<string, string>): Promise<T[]> {
    const response = await fetch(url(path), { method: 'POST', body: new URLSearchParams(fields) })
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the format of its API
    const { data, error } = (await response.json()) as { data?: { result: T[] }; error?: string }
    if (data === undefined) throw new Error(`${fields['query']}: ${error}`)
    return data.result
  }

  return {
    async ask(expr) {
      const result = await query<{ value: [number, string] }>('/api/v1/query', { query: filledIn(expr) })
      return result.filter(({ value: [, value] }) => value !== 'NaN').length
    },
    async range(expr, from, to) {
      const result = await query<{ metric: Record<string, string>; values: [number, string][] }>(
        '/api/v1/query_range',
        { query: filledIn(expr), start: String(from), end: String(to), step: String(stepS) },
      )
      return result.map(({ metric, values }) => ({
        labels: metric,
        points: values.map(([at, value]) => [at, Number(value)] as const),
      }))
    },
    async names() {
      const response = await fetch(url('/api/v1/label/__name__/values'))
      const { data }: { data: string[] } = JSON.parse(await response.text())
      return new Set(data)
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
