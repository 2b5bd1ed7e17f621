import { BenchmarkFailure } from '../support/failure.ts'
import type { BenchmarkResult } from '../support/settings.ts'
import { round } from '../support/statistics.ts'
import { percent, rowOf } from '../support/table.ts'
import type { Lateness } from './lateness.ts'
import { mibOf, type Phase } from './phase.ts'

export type PhaseName = 'before' | 'writing' | 'waiting' | 'coming due'

type Measured = {
  records: number
  tier: string
  rate: number
  destinations: number
  lateness: Lateness
  phases: ReadonlyMap<PhaseName, Phase>
  /** The number of records that the worker parked again after they were due, because it had no room for them. */
  hops: number
  repeats: number
}

/**
 * The CPU share above which the worker is saturated. It is also saturated if it had no room for a due record.
 * The throughput of a saturated worker decides the lateness.
 */
const saturatedShare = 0.9

export function resultOf(measured: Measured): BenchmarkResult {
  const { records, tier, rate, destinations, lateness, phases, hops, repeats } = measured
  const before = phaseOf('before')
  const waiting = phaseOf('waiting')
  const due = phaseOf('coming due')
  const isSaturated = due.cpuShare > saturatedShare || hops > 0
  const figures = {
    worst_lateness_ms: lateness.maxMs,
    early: lateness.early,
    lateness_p50_ms: lateness.p50Ms,
    lateness_p99_ms: lateness.p99Ms,
    lateness_least_ms: lateness.leastMs,
    records,
    tier,
    due_per_s: Math.round(lateness.duePerS.mean),
    due_per_s_max: lateness.duePerS.max,
    repeats,
    parked_once_more: hops,
    parked_gauge: waiting.parked,
    rss_waiting_ratio: round(waiting.rssBytes / before.rssBytes, 3),
    cpu_share_waiting: round(waiting.cpuShare, 4),
    worker_saturated: isSaturated,
    phases: Object.fromEntries([...phases].map(([name, phase]) => [name.replace(' ', '_'), plain(phase)])),
    rate_per_s: rate,
    destinations,
    node: process.version,
  }
  const table = [
    '',
    `${records.toLocaleString('en')} records in retry.${tier}, ${figures.due_per_s.toLocaleString('en')} due a second (at most ${lateness.duePerS.max.toLocaleString('en')}), to ${destinations} destinations;`,
    `one worker process, Node ${process.version}`,
    '',
    rowOf('lateness', ['p50 ms', 'p99 ms', 'worst ms', 'least ms', 'early']),
    rowOf('', [
      lateness.p50Ms.toFixed(0),
      lateness.p99Ms.toFixed(0),
      lateness.maxMs.toFixed(0),
      lateness.leastMs.toFixed(0),
      String(lateness.early),
    ]),
    '',
    rowOf('the worker', ['RSS MiB', 'most MiB', 'heap MiB', 'CPU share', 'gauge', 'others use']),
    ...[...phases].map(([name, phase]) => rowOf(name, cellsOf(phase))),
    '',
    `all came; ${repeats} more than once, ${hops} were parked once more`,
    ...(isSaturated
      ? [
          'more came due than the worker could take: this lateness is that of its throughput, --rate makes it less',
        ]
      : []),
  ].join('\n')
  return { table, figures }

  function phaseOf(name: PhaseName): Phase {
    const phase = phases.get(name)
    if (phase === undefined) throw new BenchmarkFailure(`nothing was measured of "${name}"`)
    return phase
  }
}

function cellsOf({ rssBytes, maxRssBytes, heapBytes, cpuShare, othersShare, parked }: Phase): string[] {
  return [
    mibOf(rssBytes).toFixed(1),
    mibOf(maxRssBytes).toFixed(1),
    mibOf(heapBytes).toFixed(1),
    `${(cpuShare * 100).toFixed(1)} %`,
    parked.max.toLocaleString('en'),
    percent(othersShare),
  ]
}

function plain({ rssBytes, maxRssBytes, heapBytes, cpuShare, othersShare, parked }: Phase): object {
  return {
    rss_mib: round(mibOf(rssBytes), 1),
    rss_max_mib: round(mibOf(maxRssBytes), 1),
    heap_mib: round(mibOf(heapBytes), 1),
    cpu_share: round(cpuShare, 4),
    machine_used_by_others: round(othersShare, 3),
    parked_gauge: parked,
  }
}
