import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { boards } from '../../scripts/dashboard-panels.ts'
import { dashboardFiles } from '../../scripts/dashboards.ts'
import { drawBoard, isDrawn } from '../../scripts/plots/dashboard.ts'
import { story } from '../../scripts/plots/story.ts'
import { type Prometheus, type Series, stepS } from '../support/prometheus.ts'
import { namesIn } from '../support/promql.ts'
import { linesOf, readRunbook, runbooks } from '../support/runbooks.ts'
import { until } from '../support/until.ts'
import { DashboardRun } from './dashboard-run.ts'

const root = resolve(import.meta.dirname, '../..')
/**
 * The folder for drawings of the dashboards, such as `docs/dashboards`. If it is set, the story of the
 * dashboards takes seven minutes, for the pictures of the docs. Otherwise, it takes less than two.
 */
const picturesInto = process.env['DASHBOARD_PICTURES']

let run: DashboardRun
let prometheus: Prometheus

beforeAll(async () => {
  run = await DashboardRun.play(
    picturesInto === undefined ? { seconds: 105, warmUpS: 5 } : { seconds: 420, warmUpS: 40 },
  )
  prometheus = run.prometheus
}, 600_000)

afterAll(() => run.end())

/** Returns the values of a query while the story was played. */
const played = (expr: string): Promise<Series[]> => prometheus.range(expr, run.fromS, run.untilS)

describe('a real Prometheus', () => {
  test('has data for every query of every dashboard, of a run with faults', async () => {
    const panels = boards.flatMap(({ id, panels: all }) => all.map((panel) => ({ id, panel })))
    const queries = panels.flatMap(({ id, panel }) =>
      panel.queries.map(({ expr }) => ({ where: `${id}: ${panel.title}`, expr })),
    )
    const without: string[] = []
    for (const { where, expr } of queries) if (!hasNumbers(await played(expr))) without.push(where)
    expect(without).toEqual(picturesInto === undefined ? ['overview: Destinations that fail'] : [])
    expect(queries.length).toBeGreaterThan(60)
  })

  test('shows the story: most requests succeed until an endpoint fails, and its backlog drains', async () => {
    const share = boards
      .flatMap(({ panels }) => panels)
      .find(({ title }) => title === 'Requests that succeed')
    const [succeed] = await played(share?.queries[0]?.expr ?? '')
    const between = (from: Act, to: Act) =>
      (succeed?.points ?? []).filter(([at]) => at > timeOf(from) && at < timeOf(to)).map(([, value]) => value)
    expect(Math.min(...between('sync', 'slow'))).toBeGreaterThan(0.95)
    expect(Math.min(...between('fails', 'connect'))).toBeLessThan(0.9)
    // Neither a pause nor a slow endpoint counts for the latency of Sluice itself.
    const bad =
      'sum(increase(sluice_append_to_first_attempt_seconds_count{way="direct"}[10m])) - sum(increase(sluice_append_to_first_attempt_seconds_bucket{way="direct",le="30"}[10m]))'
    expect(await prometheus.ask(`${bad} > 0`)).toBe(0)
    await until('nothing waits for its turn', async () => prometheus.ask('sum(sluice_waiting_messages) == 0'))
  })

  test('can answer the queries of the marks of every dashboard', async () => {
    for (const text of Object.values(dashboardFiles())) {
      const { annotations }: { annotations: { list: { expr: string }[] } } = JSON.parse(text)
      expect(annotations.list).toHaveLength(2)
      for (const { expr } of annotations.list)
        await expect(prometheus.ask(expr)).resolves.toBeGreaterThanOrEqual(0)
    }
  })

  test('finds every metric of rules, dashboards and runbooks at some role, and most with a value', async () => {
    const types = new Set([...(await run.metrics()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name))
    const valued = await prometheus.names()
    const { recorded, exprs } = rulesOfFiles()
    const named = [
      ...exprs,
      ...boards.flatMap(({ panels }) => panels.flatMap(({ queries }) => queries.map(({ expr }) => expr))),
      ...runbooks.flatMap((file) => linesOf(readRunbook(file), 'promql')),
    ].flatMap(namesIn)
    const names = [...new Set(named)].filter((name) => !recorded.has(name))
    const metrics = names.map((name) => (types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '')))
    expect(metrics.length).toBeGreaterThan(70)
    expect(metrics.filter((name) => !types.has(name))).toEqual([])
    const lacking = metrics.filter((name) => !valued.has(name) && !valued.has(`${name}_count`))
    expect([...new Set(lacking)].toSorted()).toEqual(Object.keys(withoutValue))
  })

  test('evaluates every rule without a fault', async () => {
    const evaluated = await until('all were evaluated', async () => {
      const rules = await prometheus.rules()
      return rules.every(({ health }) => health !== 'unknown') ? rules : undefined
    })
    expect(evaluated.length).toBeGreaterThan(60)
    expect(evaluated.filter(({ health }) => health !== 'ok')).toEqual([])
  })

  test('answers every query of every runbook, and most with data', async () => {
    const queries = runbooks.flatMap((file) => linesOf(readRunbook(file), 'promql'))
    const without: string[] = []
    for (const expr of queries) if (!hasNumbers(await played(expr))) without.push(expr)
    expect(queries.length).toBeGreaterThan(60)
    // Queries without data are, for example, those about certificates and a proxy, which this run doesn't
    // have.
    expect(without.length / queries.length, `without data: ${without.join('; ')}`).toBeLessThan(0.2)
  })

  test('fires for an endpoint that fails for good', async () => {
    const fired = 'count(ALERTS{alertname="SluiceDeadLetters",alertstate="firing",reason="failed_for_good"})'
    await until('it fires', async () => (await prometheus.ask(fired)) > 0, { timeoutMs: 90_000 })
    expect(await prometheus.ask('ALERTS{alertname="SluiceNoWorker"}')).toBe(0)
    expect(await prometheus.ask('ALERTS{alertname="SluiceFaults"}')).toBe(0)
  })
})

describe('a drawing of each dashboard', () => {
  test('has lines in all of its panels', async () => {
    const { fromS: from, untilS, minuteS } = run
    const shown = { from, until: untilS, stepS, minuteS, moments: await momentsOfGrafana() }
    // Topics have their usual names.
    const range = async (expr: string): Promise<Series[]> =>
      JSON.parse(JSON.stringify(await played(expr)).replaceAll(run.scene.prefix, 'sluice.'))
    const faults: string[] = []
    for (const board of boards.filter(isDrawn)) {
      const { svg, empty } = await drawBoard(board, range, shown)
      faults.push(...empty.map((title) => `${board.id}: ${title} is empty`))
      if (svg.length > mostCharacters) faults.push(`${board.id} has ${svg.length} characters`)
      if (picturesInto !== undefined) writeFileSync(join(root, picturesInto, `${board.id}.svg`), svg)
    }
    expect(faults).toEqual([])
    if (picturesInto === undefined) return
    // Two edits of the catalog and a deployment. A run that is shorter than two minutes has no marks.
    expect(shown.moments.map(({ name }) => name)).toEqual(['catalog', 'catalog', 'deployment'])
  })
})

/** The most characters of a picture. */
const mostCharacters = 70_000

type Act = (typeof story)[number]['id']

/** Returns the time of an act of the story, in epoch seconds. */
function timeOf(act: Act): number {
  return run.fromS + (story.find(({ id }) => id === act)?.atMin ?? NaN) * run.minuteS
}

function hasNumbers(series: readonly Series[]): boolean {
  return series.some(({ points }) => points.some(([, value]) => Number.isFinite(value)))
}

type Annotations = { annotations: { list: { name: string; expr: string }[] } }

/** Returns the moments that Grafana marks in all panels: those at which a query of a mark begins to have a result. */
async function momentsOfGrafana(): Promise<{ at: number; name: string }[]> {
  const [text = ''] = Object.values(dashboardFiles())
  const { annotations }: Annotations = JSON.parse(text)
  const moments: { at: number; name: string }[] = []
  for (const { name, expr } of annotations.list)
    for (const { points } of await played(expr)) {
      const [first] = points
      if (first !== undefined) moments.push({ at: first[0], name: name.toLowerCase() })
    }
  return moments.toSorted((one, other) => one.at - other.at)
}

/** Metrics without a value in this run, and why. */
const withoutValue: Readonly<Record<string, string>> = {
  sluice_catalog_topic_trouble: 'the catalog is in a file',
  sluice_certificate_expiry_timestamp_seconds: 'Kafka needs no client certificate here',
  ...(picturesInto === undefined && {
    sluice_failing_destination_seconds: 'a destination is named when it has failed for five minutes',
  }),
}

/** Returns the expressions of all rules, and the names of the series that the rules record. */
function rulesOfFiles(): { recorded: ReadonlySet<string>; exprs: readonly string[] } {
  const rules = globSync('deploy/prometheus/*.rules.yaml', { cwd: root }).flatMap((file) => {
    const { groups }: { groups: { rules: { record?: string; expr: string }[] }[] } = parse(
      readFileSync(join(root, file), 'utf8'),
    )
    return groups.flatMap((group) => group.rules)
  })
  return {
    recorded: new Set(rules.flatMap(({ record }) => record ?? [])),
    exprs: rules.map(({ expr }) => expr),
  }
}
