import { round } from '../bench/support/statistics.ts'
import { latencyOf, wellDestination } from './report/series.ts'
import { causes, countUncommitted } from './repeats.ts'
import type { Drill } from './run.ts'

/** The figures of a drill. With `--json`, the last line of the output contains them. */
export type Figures = ReturnType<typeof figuresOf>

export function figuresOf(drill: Drill) {
  const { settings, evidence, verdict, ledger, audienceChanges } = drill
  const { happened, deadLetters, audiences, deliveries, deleted } = evidence
  const countOf = (kind: string): number => happened.filter(({ fault }) => fault.kind === kind).length
  const latency = latencyOf(drill, wellDestination)
  return {
    passed: verdict.isPassed,
    broken_promises: verdict.checks.filter(({ isKept }) => !isKept).map(({ promise }) => promise),
    minutes: settings.minutes,
    seed: settings.seed,
    rate_per_s: settings.rate,
    sent: ledger.acknowledged.length,
    delivered: deliveries.size,
    requests: drill.requests,
    lost: verdict.gaps.length,
    repeated: verdict.repeats.length,
    repeated_share: round(verdict.repeats.length / Math.max(1, deliveries.size), 5),
    repeats_by_cause: Object.fromEntries(
      causes.map((cause) => [cause, verdict.repeats.filter((repeat) => repeat.cause === cause).length]),
    ),
    repeats_a_worker_fault: repeatsOfFaults(drill),
    dead_letters: deadLetters.length,
    audience_changes: audienceChanges.written,
    audience_syncs: audienceChanges.syncs,
    deletions: audienceChanges.deletions + deleted.length,
    last_values_wrong: audiences.reduce((sum, { wrong }) => sum + wrong.length, 0),
    faults: happened.length,
    worker_kills: countOf('kill worker'),
    broker_kills: countOf('kill broker'),
    failed_starts: drill.failedStarts.length,
    sent_again: ledger.repeatedSends,
    gateway_answers: Object.fromEntries(ledger.answers),
    latency_p50_ms: latency.p50,
    latency_p99_ms: latency.p99,
    latency_max_ms: latency.max,
    most_lag: Math.max(0, ...drill.lags.map(({ records }) => records)),
    settle_s: round((drill.settledMs - drill.calmMs) / 1_000, 1),
    machine_used_by_others: round(drill.othersShare, 3),
    node: process.version,
  }
}

/**
 * Returns how many messages the kills and stops of workers repeated: the mean and the maximum of all faults.
 * `most_possible` is the largest number of messages that one fault may have repeated. These are the messages
 * that the worker may not have committed.
 */
function repeatsOfFaults({ evidence, verdict: { repeats } }: Drill) {
  const possible = countUncommitted(evidence)
  const byFault = Map.groupBy(
    repeats.filter(({ fault }) => fault !== undefined),
    ({ fault }) => fault,
  )
  const counts = [...byFault.values()].map(({ length }) => length)
  const sum = counts.reduce((total, count) => total + count, 0)
  return {
    faults: possible.length,
    mean: round(sum / Math.max(1, possible.length), 1),
    most: Math.max(0, ...counts),
    most_possible: Math.max(0, ...possible),
  }
}
