import type { Produced } from '../support/producer-process.ts'
import type { BenchmarkResult } from '../support/settings.ts'
import { median, round } from '../support/statistics.ts'
import type { Stream } from '../support/streams.ts'
import { percent, rowOf } from '../support/table.ts'
import type { Report } from './customers-process.ts'
import { editsIn, type TimedFault } from './faults.ts'
import type { Losses } from './losses.ts'
import { mibOf, type Sample } from './samples.ts'

export const quarters = 4
export const samplesOfQuarter = 60

type Measured = {
  /** One sample of the start, and `samplesOfQuarter` samples of each quarter. */
  samples: readonly Sample[]
  /** The sample after all messages had ended. */
  last: Sample
  report: Report
  losses: Losses
  produced: Produced
  edits: { made: number; taken: number }
  faults: readonly TimedFault[]
  /** The share of the machine's CPU time that other programs used, from 0 to 1. */
  othersShare: number
  stream: Stream
}

type Quarter = {
  rssMib: number
  heapMib: number
  delivered: number
  retries: number
  dead: number
}

export function resultOf(measured: Measured): BenchmarkResult {
  const { samples, last, report, losses, produced, edits, faults, othersShare, stream } = measured
  const all = Array.from({ length: quarters }, (_, index) => quarterOf(samples, index))
  const [, second, , fourth] = all
  const ratio = (pick: (quarter: Quarter) => number): number =>
    second === undefined || fourth === undefined ? Number.NaN : pick(fourth) / pick(second)
  const rssRatio = ratio(({ rssMib }) => rssMib)
  const heapRatio = ratio(({ heapMib }) => heapMib)
  const restarts = faults.length - editsIn(faults)
  const figures = {
    rss_ratio: round(rssRatio, 3),
    heap_ratio: round(heapRatio, 3),
    quarters: all.map(plain),
    messages: produced.messages,
    healthy_missing: losses.healthyMissing,
    lost: losses.lost,
    dead_letters: last.dead,
    not_routed: last.notRouted,
    requests: report.requests,
    repeats: report.repeats,
    catalog_edits: edits.taken,
    restarts_each_quarter: restarts,
    rate_per_s: stream.perS,
    destinations: stream.count,
    seconds: stream.untilS,
    machine_used_by_others: round(othersShare, 3),
    rss_mib: samples.map(({ rssBytes }) => round(mibOf(rssBytes), 1)),
    heap_mib: samples.map(({ heapBytes }) => round(mibOf(heapBytes), 1)),
    node: process.version,
  }
  const table = [
    '',
    `${stream.perS}/s to ${stream.count} destinations for ${stream.untilS / 60} minutes: one dead, one slow, one failing, one resetting;`,
    `in each quarter ${restarts} restarts of receivers and ${editsIn(faults)} edits of the catalog; one worker process, Node ${process.version}`,
    '',
    rowOf('quarter', ['RSS MiB', 'heap MiB', 'delivered', 'retries', 'dead letters']),
    ...all.map((quarter, index) => rowOf(String(index + 1), cellsOf(quarter))),
    '',
    rowOf('last / second, 1.1 at most', [rssRatio.toFixed(3), heapRatio.toFixed(3)]),
    '',
    `${produced.messages} messages, none lost: all to healthy destinations came, ${losses.dead} are in the dead letters,`,
    `${losses.notRouted} were not routed to a destination that was off; ${report.repeats} came more than once`,
    `${percent(othersShare)} of the machine was used by others`,
  ].join('\n')
  return { table, figures }
}

function quarterOf(samples: readonly Sample[], index: number): Quarter {
  const from = samples[index * samplesOfQuarter]
  const until = samples[(index + 1) * samplesOfQuarter]
  const within = samples.slice(index * samplesOfQuarter + 1, (index + 1) * samplesOfQuarter + 1)
  const grown = (pick: (sample: Sample) => number): number =>
    from === undefined || until === undefined ? Number.NaN : pick(until) - pick(from)
  return {
    rssMib: mibOf(median(within.map(({ rssBytes }) => rssBytes))),
    heapMib: mibOf(median(within.map(({ heapBytes }) => heapBytes))),
    delivered: grown(({ delivered }) => delivered),
    retries: grown(({ retries }) => retries),
    dead: grown(({ dead }) => dead),
  }
}

function cellsOf({ rssMib, heapMib, delivered, retries, dead }: Quarter): string[] {
  const counts = [delivered, retries, dead].map((count) => count.toLocaleString('en'))
  return [rssMib.toFixed(1), heapMib.toFixed(1), ...counts]
}

function plain({ rssMib, heapMib, delivered, retries, dead }: Quarter): object {
  return {
    rss_mib: round(rssMib, 1),
    heap_mib: round(heapMib, 1),
    delivered,
    retries,
    dead_letters: dead,
  }
}
