import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import { readConfig } from '../../src/config/read.ts'
import { startKafka } from '../../src/development/kafka.ts'
import { openCatalogDesk, type OpenedDesk } from '../../src/roles/operations/catalog-desk.ts'
import {
  growYoungRoomWhenBusy,
  holdYoungRoom,
  tuneGarbageCollector,
} from '../../src/roles/start/garbage-collector.ts'
import { applyTopicTable } from '../../src/roles/operations/topic-table.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { percentile, round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'
import { editOf, made } from './edits.ts'
import { type Follower, startFollower } from './follower-process.ts'
import { loadCatalog } from './in-memory.ts'
import { measureTraffic } from './traffic.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }
const sizes = [10_000, 100_000] as const
/** Three workers and two gateways. */
const followers = 5
const singles = 200
const putsAtOnce = 10_000
const waitMs = 120_000

/**
 * Measures the catalog in its topic. First in memory: what a process needs to load it, and what a change
 * costs, from its record to the catalogs that a worker derives of it. Then on a real Kafka, with followers in
 * processes of their own, each with its copy on the disk: how long it takes until all of them use a change, and
 * how long a burst of changes blocks them. At last with traffic: what a burst costs the messages of a worker.
 */
export async function runCatalogBenchmark(settings: Settings): Promise<BenchmarkResult> {
  // As in a worker, whose longest pieces are collections of young objects.
  holdYoungRoom()
  tuneGarbageCollector()
  growYoungRoomWhenBusy()
  const puts = settings.destinations ?? putsAtOnce
  const loaded = []
  for (const size of sizes) {
    const one = await loadCatalog(size)
    say(`${size} destinations: ${JSON.stringify(one)}`)
    loaded.push(one)
  }
  const [small, large] = loaded
  const { live, large: whole } = await withDesk(async (stage) => {
    const measured = await measureLive(stage, puts)
    say(`live: ${JSON.stringify(measured)}`)
    return { live: measured, large: await measureImport(stage) }
  })
  say(`import: ${JSON.stringify(whole)}`)
  const traffic = await measureTraffic({ ...settings, puts })
  const figures = {
    load_s: round(small?.cpuS ?? NaN, 2),
    load_100k_s: round(large?.cpuS ?? NaN, 2),
    bytes_per_destination: Math.round(large?.bytesEach ?? NaN),
    change_cpu_ms: round(small?.changeCpuMs ?? NaN, 2),
    change_cpu_100k_ms: round(large?.changeCpuMs ?? NaN, 2),
    burst_piece_cpu_ms: round(small?.pieceCpuMs ?? NaN, 1),
    burst_piece_cpu_100k_ms: round(large?.pieceCpuMs ?? NaN, 1),
    change_p50_ms: round(live.answeredP50Ms, 1),
    change_live_p99_ms: Math.round(live.liveP99Ms),
    burst_puts: puts,
    burst_s: round(live.burstS, 1),
    burst_block_ms: round(live.blockMs, 1),
    followers,
    import_100k_s: round(whole.importS, 1),
    import_100k_used_s: round(whole.usedS, 1),
    import_100k_block_ms: round(whole.blockMs, 1),
    traffic_per_s: Math.round(traffic.ratePerS),
    traffic_p99_ms: round(traffic.p99Ms, 1),
    traffic_p99_ratio: round(traffic.p99Ratio, 2),
  }
  const table = Object.entries(figures).map(([name, value]) => rowOf(name, [String(value)]))
  return { table: table.join('\n'), figures }
}

/** The objects of an import. */
const imported = 100_000

type Import = { readonly importS: number; readonly usedS: number; readonly blockMs: number }

/** Imports a large catalog in one change, beside a follower. */
async function measureImport({ desk, variables, folder }: Stage): Promise<Import> {
  const settings = { ...variables, SLUICE_STATE_FOLDER: join(folder, 'state-import') }
  const changed = Promise.withResolvers<void>()
  let due = Infinity
  const follower = await startFollower(settings, () => {
    if (follower.revision >= due) changed.resolve()
  })
  try {
    await follower.blocked()
    const startedMs = performance.now()
    const edits = Array.from({ length: imported }, (_, index) => editOf(`import-${index}`, 0))
    due = await made(desk, edits)
    const importS = (performance.now() - startedMs) / 1_000
    if (follower.revision < due) await changed.promise
    const usedS = (performance.now() - startedMs) / 1_000
    const { ms, destinations } = await follower.blocked()
    if (destinations < imported) throw new BenchmarkFailure('the follower lacks destinations')
    return { importS, usedS, blockMs: ms }
  } finally {
    await follower.stop()
  }
}

type Live = {
  readonly answeredP50Ms: number
  readonly liveP99Ms: number
  readonly burstS: number
  /** The longest time for which the event loop of a follower was blocked in the burst. */
  readonly blockMs: number
}

type Stage = {
  readonly desk: OpenedDesk
  readonly variables: Readonly<Record<string, string>>
  readonly folder: string
}

async function withDesk<T>(work: (stage: Stage) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-catalog-'))
  writeFileSync(join(folder, 'keys'), newKeyLine())
  const kafka = await startKafka({ brokers: [], report: say })
  const variables = variablesOf(kafka.brokers, join(folder, 'keys'))
  const read = readConfig({ env: variables })
  if (!read.ok) throw new BenchmarkFailure(read.message)
  const { config } = read
  await applyTopicTable(config, silent)
  const desk = await openCatalogDesk(config, silent, 'admin')
  try {
    return await work({ desk, variables, folder })
  } finally {
    await desk.close()
    await kafka.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureLive({ desk, variables, folder }: Stage, puts: number): Promise<Live> {
  const running: Follower[] = []
  try {
    await made(desk, [{ name: { kind: 'source', id: 'shop' }, op: 'put', given: { id: 'shop' } }])
    let wake: (() => void) | undefined
    for (let index = 0; index < followers; index++)
      running.push(
        await startFollower({ ...variables, SLUICE_STATE_FOLDER: join(folder, `state-${index}`) }, () =>
          wake?.(),
        ),
      )
    const allUse = async (revision: number): Promise<void> => {
      const untilMs = performance.now() + waitMs
      while (running.some((one) => one.revision < revision)) {
        if (performance.now() > untilMs) throw new BenchmarkFailure(`a follower does not use r${revision}`)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
    const answered: number[] = []
    const live: number[] = []
    for (let change = 0; change < singles; change++) {
      const startedMs = performance.now()
      const revision = await made(desk, [editOf(`single-${change % 10}`, change)])
      answered.push(performance.now() - startedMs)
      await allUse(revision)
      live.push(performance.now() - startedMs)
    }
    for (const one of running) await one.blocked()
    const startedMs = performance.now()
    const edits = Array.from({ length: puts }, (_, index) => editOf(`put-${index}`, 0))
    const revisions = await Promise.all(edits.map((edit) => made(desk, [edit])))
    const burstS = (performance.now() - startedMs) / 1_000
    await allUse(Math.max(...revisions))
    const blocked = await Promise.all(running.map((one) => one.blocked()))
    if (blocked.some(({ destinations }) => destinations < puts))
      throw new BenchmarkFailure('a follower lacks destinations')
    return {
      answeredP50Ms: percentile(sorted(answered), 0.5),
      liveP99Ms: percentile(sorted(live), 0.99),
      burstS,
      blockMs: Math.max(...blocked.map(({ ms }) => ms)),
    }
  } finally {
    for (const one of running) await one.stop()
  }
}

function sorted(values: readonly number[]): Float64Array {
  return Float64Array.from(values).toSorted()
}

function variablesOf(brokers: readonly string[], keysFile: string): Readonly<Record<string, string>> {
  return {
    SLUICE_KAFKA_BROKERS: brokers.join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: `bench-${randomBytes(3).toString('hex')}.`,
    SLUICE_TOPICS_DEVELOPMENT: 'true',
    SLUICE_CATALOG_SOURCE: 'topic',
    SLUICE_CATALOG_KEYS_FILE: keysFile,
  }
}
