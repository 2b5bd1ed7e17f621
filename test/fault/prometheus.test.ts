import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { boards } from '../../scripts/dashboard-panels.ts'
import { dashboardFiles } from '../../scripts/dashboards.ts'
import { drawBoard, isDrawn } from '../../scripts/plots/dashboard.ts'
import { newIds, type Scene, setScene } from '../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../support/admin.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { ensureCommands } from '../support/debian.ts'
import { type Collector, startCollector } from '../support/otlp.ts'
import { type Prometheus, startPrometheus } from '../support/prometheus.ts'
import { namesIn } from '../support/promql.ts'
import { linesOf, readRunbook, runbooks } from '../support/runbooks.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'

const root = resolve(import.meta.dirname, '../..')
/**
 * The folder for drawings of the dashboards, such as `docs/dashboards`. If it is set, the test draws a run of
 * four minutes, for the pictures of the docs.
 */
const picturesInto = process.env['DASHBOARD_PICTURES']
const key = 'KEY'
/** The start of the time that the drawings show, in epoch seconds. */
let startedS = 0

let receiver: CountingReceiver
let scene: Scene
let worker: SluiceProcess
let gateway: SluiceProcess
let index: SluiceProcess
let admin: SluiceProcess
let tokens: AdminTokens
let collector: Collector
let prometheus: Prometheus

/**
 * Starts all roles, and a Prometheus that reads the metrics of all of them. Some messages are delivered, some
 * fail, some have no destination, and some are repeats.
 */
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
  tokens = await makeTokens()
  collector = await startCollector()
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop', writeKeys: [key] }, { id: 'unheard' }],
      destinations: [
        ...['healthy', 'failing', 'gone'].map(destination),
        // More messages come than the first takes, and the second takes none, so that some wait for their turn.
        { ...destination('small'), rateLimit: { perSecond: 0.5 } },
        { ...destination('paused'), state: 'paused' },
      ],
    },
    variables: {
      SLUICE_RETRY_LADDER: '1s,1h',
      SLUICE_RETRY_THEN: '1h',
      SLUICE_ADMIN_TOKENS_FILE: tokens.file,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
    },
  })
  worker = await startSluice(scene.variables)
  gateway = await startSluice(scene.variables, { role: 'gateway' })
  index = await startSluice(scene.variables, { role: 'log serve' })
  admin = await startSluice(scene.variables, { role: 'admin' })
  prometheus = await startPrometheus([worker, gateway, index, admin].map(({ httpPort }) => httpPort))
  startedS = Math.floor(Date.now() / 1_000)
}, 180_000)

afterAll(async () => {
  await prometheus.stop()
  for (const one of [worker, gateway, index, admin]) await one.kill()
  await collector.stop()
  tokens.remove()
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
        panel.queries.map(({ expr }) => ({ where: `${id}: ${panel.title}`, expr })),
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

  test('can answer the queries of the marks of every dashboard', async () => {
    for (const text of Object.values(dashboardFiles())) {
      const { annotations }: { annotations: { list: { expr: string }[] } } = JSON.parse(text)
      expect(annotations.list).toHaveLength(2)
      for (const { expr } of annotations.list)
        await expect(prometheus.ask(expr)).resolves.toBeGreaterThanOrEqual(0)
    }
  })

  test('finds every metric of rules, dashboards and runbooks at some role, and most with a value', async () => {
    const pages = await Promise.all(
      [worker, gateway, index, admin].map(async ({ httpPort }) =>
        (await fetch(`http://127.0.0.1:${httpPort}/metrics`)).text(),
      ),
    )
    const all = pages.join('')
    const types = new Map(
      [...all.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type]) => [name, type]),
    )
    const valued = new Set([...all.matchAll(/^(\w+?)(?:_bucket|_sum|_count)?[{ ]/gm)].map(([, name]) => name))
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
    expect(metrics.filter((name) => !valued.has(name)).toSorted()).toEqual(withoutValue)
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
    for (const expr of queries) if ((await prometheus.ask(expr)) === 0) without.push(expr)
    expect(queries.length).toBeGreaterThan(60)
    // Queries without data are, for example, those about certificates and a proxy, which this run doesn't
    // have.
    expect(without.length / queries.length, `without data: ${without.join('; ')}`).toBeLessThan(0.2)
  })

  test('fires for an endpoint that fails for good', { timeout: 120_000 }, async () => {
    const fired = 'count(ALERTS{alertname="SluiceDeadLetters",alertstate="firing",reason="failed_for_good"})'
    await until('it fires', async () => (await prometheus.ask(fired)) > 0, { timeoutMs: 90_000 })
    expect(await prometheus.ask('ALERTS{alertname="SluiceNoWorker"}')).toBe(0)
    expect(await prometheus.ask('ALERTS{alertname="SluiceFaults"}')).toBe(0)
  })
})

describe('a drawing of each dashboard', () => {
  test('has lines in all of its panels', { timeout: 600_000 }, async () => {
    await playFor(picturesInto === undefined ? 20 : 240)
    const now = Math.floor(Date.now() / 1_000)
    for (const board of boards.filter(isDrawn)) {
      const { svg, empty } = await drawBoard(board, (expr) => prometheus.range(expr, startedS, now), {
        from: startedS,
        until: now,
      })
      expect(empty, `of ${board.id}`).toEqual([])
      if (picturesInto !== undefined) writeFileSync(join(root, picturesInto, `${board.id}.svg`), svg)
    }
  })
})

/** Metrics without a value. Kafka needs no client certificate here, so there is no expiry time to report. */
const withoutValue: readonly string[] = ['sluice_certificate_expiry_timestamp_seconds']

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

const replaysUrl = () => `http://127.0.0.1:${admin.adminPort}/v1/replays`

/** Sends one request to the admin API without a token, and one with a token. Signs in with a right and a wrong one. */
async function askAdmin(): Promise<void> {
  await fetch(replaysUrl())
  await fetch(replaysUrl(), { headers: { authorization: `Bearer ${tokens.read}` } })
  for (const token of [tokens.read, 'sluice_wrong'])
    await fetch(`http://127.0.0.1:${admin.adminPort}/v1/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    })
}

/** Replays all dead letters so far of the endpoint that fails for good, two a second. */
async function replay(): Promise<void> {
  const answer = await fetch(replaysUrl(), {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${tokens.operate}` },
    body: JSON.stringify({ selection: { of: 'dead-letters', destination: 'gone' }, perSecond: 2 }),
  })
  expect(answer.ok, `it said: ${await answer.text()}`).toBe(true)
}

/**
 * Sends messages of all kinds. In this time, the healthy endpoint becomes slow, then fails, and then is
 * healthy again.
 */
async function playFor(seconds: number): Promise<void> {
  const startedMs = performance.now()
  await replay()
  const phase = (share: number): boolean => performance.now() - startedMs > share * seconds * 1_000
  const behaviours = [
    { from: 0.3, behaviour: { delayMs: 800 } },
    { from: 0.5, behaviour: { status: 503 } },
    { from: 0.7, behaviour: {} },
  ]
  while (!phase(1)) {
    while (behaviours[0] !== undefined && phase(behaviours[0].from))
      await receiver.behave('/healthy', behaviours.shift()?.behaviour ?? {})
    await sendAllKinds()
  }
}

async function sendAllKinds(): Promise<void> {
  await askAdmin()
  const [id] = newIds(1)
  for (const messageId of [id, id]) {
    await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Basic ${btoa(`${key}:`)}` },
      body: JSON.stringify({ userId: 'u', event: 'Order Completed', messageId }),
    })
  }
  // A message that can't be delivered.
  await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Basic ${btoa(`${key}:`)}` },
    body: JSON.stringify({ event: 5 }),
  })
  await scene.send('nobody', newIds(1))
  await scene.send('unheard', newIds(1))
  await scene.send('shop', newIds(3))
}
