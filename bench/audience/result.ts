import type { BenchmarkResult } from '../support/settings.ts'
import { round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'
import type { Played } from './played.ts'
import type { Work } from './phases.ts'

/**
 * All measurements. `rssMib`: median memory (RSS) of the workers that created the audience. `smallRssMib`:
 * the same median for the workers that created a tenth of the audience.
 */
type Measured = Played & { members: number; rssMib: number; smallRssMib: number }

export function resultOf(measured: Measured): BenchmarkResult {
  const { members, rssMib, smallRssMib, created, resynced, restored, syncCompared, quiet, changesCompared } =
    measured
  const syncPerS = perCpuSecond(syncCompared)
  const changesPerS = perCpuSecond(changesCompared)
  const figures = {
    create_per_s: Math.round(members / created.writtenS),
    delivered_per_s: Math.round(members / created.delivered.seconds),
    create_cpu_us: round(cpuUsOf(created.delivered), 1),
    /** The lower of the two figures below. */
    compare_per_s: Math.min(syncPerS, changesPerS),
    compare_sync_per_s: syncPerS,
    compare_changes_per_s: changesPerS,
    quiet_per_s: perCpuSecond(quiet),
    resync_identifies: resynced.count,
    resync_s: round(resynced.seconds, 2),
    restore_s: round(restored.seconds, 2),
    restore_ready_s: round(restored.readyS, 2),
    restore_records: restored.records,
    rss_ratio: round(rssMib / smallRssMib, 3),
    rss_mib: round(rssMib, 1),
    rss_small_mib: round(smallRssMib, 1),
    members,
    node: process.version,
  }
  const table = [
    '',
    `an audience of ${members.toLocaleString('en')} members, one worker process, Node ${process.version}`,
    '',
    rowOf('', ['count', 's', 'a CPU second', 'CPU µs each']),
    rowOf('created and delivered', cellsOf(created.delivered)),
    rowOf('joined and left', cellsOf(resynced)),
    rowOf('unchanged in a sync', cellsOf(syncCompared)),
    rowOf('unchanged single changes', cellsOf(changesCompared)),
    rowOf('quiet version records', cellsOf(quiet)),
    '',
    `all memberships were written after ${created.writtenS.toFixed(1)} s, ${figures.create_per_s.toLocaleString('en')} a second`,
    `just the ${resynced.count.toLocaleString('en')} who joined or left were told of the second sync, and nobody twice`,
    `restored from ${restored.records.toLocaleString('en')} records in ${restored.seconds.toFixed(1)} s, ready ${restored.readyS.toFixed(1)} s after its start`,
    `RSS ${rssMib.toFixed(0)} MiB, with a tenth of the members ${smallRssMib.toFixed(0)} MiB: ${figures.rss_ratio} times as much`,
  ].join('\n')
  return { table, figures }
}

function perCpuSecond({ count, cpuSeconds }: Work): number {
  return Math.round(count / cpuSeconds)
}

function cpuUsOf({ count, cpuSeconds }: Work): number {
  return (cpuSeconds / count) * 1e6
}

function cellsOf(work: Work): string[] {
  return [
    work.count.toLocaleString('en'),
    work.seconds.toFixed(1),
    perCpuSecond(work).toLocaleString('en'),
    cpuUsOf(work).toFixed(1),
  ]
}
