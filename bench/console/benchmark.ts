import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Browser } from 'playwright-core'
import { startChromium } from '../../test/support/chromium.ts'
import { measureAlone } from '../isolation/capacity.ts'
import { monotonicUs } from '../support/clock.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { watchOthers } from '../support/machine-cpu.ts'
import { measurePairs, type SideName } from '../support/pairs.ts'
import { startProducer } from '../support/producer-process.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { openStage, type ScenePlan, type Stage } from '../support/stage.ts'
import { median, round } from '../support/statistics.ts'
import { destinationIdOf, messagesOf, type Stream } from '../support/streams.ts'
import { percent, rowOf } from '../support/table.ts'
import { sharedSecret } from '../support/worker-variables.ts'
import { askAll } from './asker.ts'
import { startInstallation } from './installation.ts'
import { pages, visit, type Visit } from './pages.ts'
import { openViews } from './views-process.ts'

const root = resolve(import.meta.dirname, '../..')
const sessions = 200
/** The destinations to which the capacity is measured. */
const busy = 100
const leadS = 5
const idleRounds = 20
const timesVisited = 5

/**
 * Measures the console, with the admin API and the index of the delivery log in processes of their own.
 *
 * - Its bytes, gzipped.
 * - When Chromium paints each page first, and shows it whole, with 10,000 destinations, and how many calls it makes.
 * - The p95 of these calls while the worker has nothing to do, and at half of its capacity.
 * - What 200 sessions cost that each follow a busy destination: the worker's capacity with them and without.
 */
export async function runConsoleBenchmark({
  runs = 3,
  messages = 80_000,
  seconds = 30,
  destinations = 10_000,
  profileDir,
}: Settings): Promise<BenchmarkResult> {
  const bytes = bundleBytes()
  const othersShare = watchOthers()
  const stage = await openStage({ destinations, profileDir, report: say })
  const browser = await startChromium()
  try {
    const pairs = await measurePairs(runs, async (side, pair) => {
      const perS = await measureSide(stage, side, messages)
      say(`pair ${pair}: ${side} live views, ${Math.round(perS)} deliveries a second`)
      return perS
    })
    const [without, withViews] = [
      median(pairs.map((pair) => pair.without)),
      median(pairs.map((pair) => pair.with)),
    ]
    const rate = Math.floor(without / 2)
    const { visits, idle, loaded } = await measurePages(stage, browser, { destinations, seconds, rate })
    const ratios = new Map([...idle].map(([page, ms]) => [page, (loaded.get(page) ?? NaN) / ms]))
    const figures = {
      bytes_gzipped: bytes,
      destinations,
      first_paint_ms: Math.round(Math.max(...visits.map(({ firstPaintMs }) => firstPaintMs))),
      shown_ms: Math.round(Math.max(...visits.map(({ shownMs }) => shownMs))),
      calls: Math.max(...visits.map(({ calls }) => calls.length)),
      half_load_per_s: rate,
      p95_ratio: round(Math.max(...ratios.values()), 2),
      live_views: sessions,
      live_views_cost: round(1 - withViews / without, 3),
      capacity_per_s: { without: Math.round(without), with: Math.round(withViews) },
      pages: visits.map(({ page, calls, firstPaintMs, shownMs }) => ({
        page,
        calls: calls.length,
        first_paint_ms: Math.round(firstPaintMs),
        shown_ms: Math.round(shownMs),
        p95_idle_ms: round(idle.get(page) ?? NaN, 1),
        p95_half_load_ms: round(loaded.get(page) ?? NaN, 1),
      })),
      pairs: pairs.map((pair) => [Math.round(pair.without), Math.round(pair.with)]),
      machine_used_by_others: round(othersShare(), 3),
      node: process.version,
    }
    return { table: tableOf(figures), figures }
  } finally {
    await browser.close()
    await stage.close()
  }
}

/** Builds the console as it is served, and returns the bytes of all of its files, gzipped. */
function bundleBytes(): number {
  execFileSync(process.execPath, [join(root, 'scripts/build-console.ts')], { stdio: 'ignore' })
  const manifest: Record<string, { gzipped: number }> = JSON.parse(
    readFileSync(join(root, 'dist/console/manifest.json'), 'utf8'),
  )
  return Object.values(manifest).reduce((sum, { gzipped }) => sum + gzipped, 0)
}

/** Measures the capacity of a worker, beside the admin API and the index. */
function measureSide(stage: Stage, side: SideName, messages: number): Promise<number> {
  const plan: ScenePlan = { fleet: { count: busy }, variables: {} }
  return measureAlone(stage, {
    plan,
    messages,
    first: 0,
    async beside(scene) {
      const installation = await startInstallation(scene, stage.folder)
      if (side === 'without') return installation.stop
      const cookies: string[] = []
      for (let session = 0; session < sessions; session++) cookies.push(await installation.signIn())
      const views = await openViews({
        origin: installation.origin,
        cookies,
        destinations: Array.from({ length: busy }, (_, index) => destinationIdOf(index)),
      })
      return async () => {
        const { open, bytes, asked } = await views.count()
        say(`${open} live views are open, got ${round(bytes / 1e6, 1)} MB, and asked ${asked} times`)
        await views.stop()
        await installation.stop()
        if (open < sessions || bytes < sessions * 1_000)
          throw new BenchmarkFailure('live views were ended, or got nothing')
      }
    },
  })
}

type PageFigures = {
  readonly visits: readonly Visit[]
  readonly idle: ReadonlyMap<string, number>
  readonly loaded: ReadonlyMap<string, number>
}

async function measurePages(
  stage: Stage,
  browser: Browser,
  { destinations, seconds, rate }: { destinations: number; seconds: number; rate: number },
): Promise<PageFigures> {
  const scene = await stage.setScene({ fleet: { count: destinations }, variables: {} })
  const worker = await scene.startWorker()
  const installation = await startInstallation(scene, stage.folder)
  const { origin } = installation
  const cookie = await installation.signIn()
  const visits: Visit[] = []
  try {
    // The first traffic gives the pages something to show.
    await produce(stage, scene.topic, { perS: rate, untilS: leadS, count: destinations })
    for (const name of pages) {
      const page = name.replace('ID', destinationIdOf(7))
      visits.push(await visit(browser, { origin, cookie, page, times: timesVisited }))
      say(`${page}: ${JSON.stringify({ ...visits.at(-1), calls: visits.at(-1)?.calls.length })}`)
    }
    const idle = await askAll(visits, { origin, cookie, isOver: (rounds) => rounds >= idleRounds })
    let isProduced = false
    const produced = produce(stage, scene.topic, { perS: rate, untilS: seconds, count: busy }).finally(() => {
      isProduced = true
    })
    const loaded = await askAll(visits, { origin, cookie, isOver: () => isProduced })
    await produced
    await worker.stop()
    return { visits, idle, loaded }
  } finally {
    await installation.stop()
    await worker.abandon()
  }
}

/** Produces at a rate, and resolves when all is produced. */
async function produce(
  { brokers, recorder }: Stage,
  topic: string,
  { perS, untilS, count }: { perS: number; untilS: number; count: number },
): Promise<void> {
  const stream: Stream = { first: 0, count, perS, fromS: 0, untilS, order: 'turn' }
  const producer = await startProducer({ brokers, topic, streams: [stream], fromS: 0 })
  try {
    recorder.begin({ messages: messagesOf(stream), secret: sharedSecret, special: [] })
    await producer.run(monotonicUs())
  } finally {
    await producer.stop()
  }
}

type Figures = {
  readonly bytes_gzipped: number
  readonly destinations: number
  readonly first_paint_ms: number
  readonly calls: number
  readonly half_load_per_s: number
  readonly p95_ratio: number
  readonly live_views_cost: number
  readonly machine_used_by_others: number
  readonly pages: readonly {
    readonly page: string
    readonly calls: number
    readonly first_paint_ms: number
    readonly shown_ms: number
    readonly p95_idle_ms: number
    readonly p95_half_load_ms: number
  }[]
}

function tableOf(figures: Figures): string {
  return [
    '',
    `${figures.destinations.toLocaleString('en')} destinations, half load is ${figures.half_load_per_s} messages a second`,
    '',
    rowOf('page', ['calls', 'first paint', 'shown', 'p95 idle', 'p95 half load']),
    ...figures.pages.map(({ page, calls, first_paint_ms, shown_ms, p95_idle_ms, p95_half_load_ms }) =>
      rowOf(page, [calls, first_paint_ms, shown_ms, p95_idle_ms, p95_half_load_ms].map(String)),
    ),
    '',
    rowOf('bytes, gzipped', [figures.bytes_gzipped.toLocaleString('en')]),
    rowOf('first paint, at most', [`${figures.first_paint_ms} ms`]),
    rowOf('calls of a page, at most', [String(figures.calls)]),
    rowOf('p95 half load / idle', [figures.p95_ratio.toFixed(2)]),
    rowOf('cost of live views', [percent(figures.live_views_cost)]),
    rowOf('machine used by others', [percent(figures.machine_used_by_others)]),
    '',
  ].join('\n')
}
