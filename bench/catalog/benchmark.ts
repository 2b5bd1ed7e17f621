import {
  growYoungRoomWhenBusy,
  holdYoungRoom,
  tuneGarbageCollector,
} from '../../src/roles/start/garbage-collector.ts'
import { chosenRows } from '../support/chosen-rows.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'
import { loadCatalog } from './in-memory.ts'
import { measureAlone, measureImport, measureLive } from './live.ts'
import { withDesk } from './stage.ts'
import { measureTraffic } from './traffic.ts'

export type CatalogSettings = Settings & {
  /** The names of the parts to measure, separated by commas. Missing: all. */
  only?: string | undefined
}

type Figures = Readonly<Record<string, number>>

/** A part of the benchmark that can be run alone. */
type Part = { readonly name: string; run(settings: Settings & { readonly puts: number }): Promise<Figures> }

const putsAtOnce = 10_000

/**
 * Measures the catalog in its topic. First in memory: what a process needs to load it, and what a change
 * costs, from its record to the catalogs that a worker derives of it. Then on a real Kafka, with followers in
 * processes of their own, each with its copy on the disk: how long it takes until all of them use a change,
 * how long a burst of changes blocks them, and how long an import takes. At last with traffic: what a burst
 * costs the messages of a worker.
 */
export async function runCatalogBenchmark(settings: CatalogSettings): Promise<BenchmarkResult> {
  // As in a worker, whose longest pieces are collections of young objects.
  holdYoungRoom()
  tuneGarbageCollector()
  growYoungRoomWhenBusy()
  const puts = settings.destinations ?? putsAtOnce
  const figures: Record<string, number> = {}
  for (const part of chosenRows(parts, settings.only)) {
    const measured = await part.run({ ...settings, puts })
    say(`${part.name}: ${JSON.stringify(measured)}`)
    Object.assign(figures, measured)
  }
  const table = Object.entries(figures).map(([name, value]) => rowOf(name, [String(value)]))
  return { table: table.join('\n'), figures }
}

const parts: readonly Part[] = [
  {
    name: 'load',
    async run() {
      const small = await loadCatalog(10_000)
      const large = await loadCatalog(100_000)
      return {
        load_s: round(small.cpuS, 2),
        load_100k_s: round(large.cpuS, 2),
        bytes_per_destination: Math.round(large.bytesEach),
        change_cpu_ms: round(small.changeCpuMs, 2),
        change_cpu_100k_ms: round(large.changeCpuMs, 2),
        burst_piece_cpu_ms: round(small.pieceCpuMs, 1),
        burst_piece_cpu_100k_ms: round(large.pieceCpuMs, 1),
      }
    },
  },
  {
    name: 'live',
    async run({ puts }) {
      const live = await withDesk((stage) => measureLive(stage, puts))
      const { blocked } = live
      return {
        change_p50_ms: round(live.answeredP50Ms, 1),
        change_live_p99_ms: Math.round(live.liveP99Ms),
        burst_puts: puts,
        burst_s: round(live.burstS, 1),
        burst_used_s: round(live.usedS, 1),
        burst_block_ms: round(blocked.ms, 1),
        burst_own_block_ms: round(blocked.ownMs, 1),
        burst_block_cpu_ms: round(blocked.cpuMs, 1),
        burst_longest_block_cpu_ms: round(blocked.cpuOfLongestMs, 1),
        burst_gc_ms: round(blocked.gcMs, 1),
        followers: live.followers,
      }
    },
  },
  {
    name: 'alone',
    async run({ puts }) {
      const { blocked, burstS, usedS } = await withDesk((stage) => measureAlone(stage, puts))
      return {
        alone_burst_s: round(burstS, 1),
        alone_burst_used_s: round(usedS, 1),
        alone_block_ms: round(blocked.ms, 1),
        alone_own_block_ms: round(blocked.ownMs, 1),
        alone_block_cpu_ms: round(blocked.cpuMs, 1),
        alone_longest_block_cpu_ms: round(blocked.cpuOfLongestMs, 1),
        alone_gc_ms: round(blocked.gcMs, 1),
      }
    },
  },
  {
    name: 'import',
    async run() {
      const { importS, usedS, blocked } = await withDesk(measureImport)
      return {
        import_100k_s: round(importS, 1),
        import_100k_used_s: round(usedS, 1),
        import_100k_block_ms: round(blocked.ms, 1),
        import_100k_own_block_ms: round(blocked.ownMs, 1),
        import_100k_block_cpu_ms: round(blocked.cpuMs, 1),
        import_100k_gc_ms: round(blocked.gcMs, 1),
      }
    },
  },
  {
    name: 'traffic',
    async run(settings) {
      const traffic = await measureTraffic(settings)
      return {
        traffic_per_s: Math.round(traffic.ratePerS),
        traffic_p99_ms: round(traffic.p99Ms, 1),
        traffic_p99_ratio: round(traffic.p99Ratio, 2),
      }
    },
  },
]
