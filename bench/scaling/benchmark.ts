import type { BenchmarkResult } from '../support/settings.ts'
import { round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'
import { type Kind, type Outcome, outcomeOf, sceneOf } from './scenes.ts'
import { simulate } from './simulation.ts'

const kinds: readonly Kind[] = ['lag alone', 'work and lag']
const sizes = [
  { partitions: 12, processesPerPod: 1 },
  { partitions: 12, processesPerPod: 2 },
  { partitions: 48, processesPerPod: 2 },
  { partitions: 48, processesPerPod: 4 },
] as const
/** The heights of the load, as shares of what all processes together could do. */
export const shares = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8] as const

type Row = { kind: Kind; partitions: number; processesPerPod: number } & Outcome

/**
 * Simulates the number of pods during a load that rises tenfold and falls again. The benchmark compares two
 * triggers of the autoscaler, with the worst outcome of several heights of the load.
 */
export async function runScalingBenchmark(): Promise<BenchmarkResult> {
  const rows = kinds.flatMap((kind) =>
    sizes.map((size): Row => {
      const outcomes = shares.map((share) => outcomeOf(simulate(sceneOf(kind, { share, ...size }))))
      return { kind, ...size, ...worstOf(outcomes) }
    }),
  )
  return { table: tableOf(rows), figures: { shares, rows } }
}

function worstOf(outcomes: readonly Outcome[]): Outcome {
  const most = (key: keyof Outcome): number => Math.max(...outcomes.map((one) => one[key]))
  return {
    steadyChanges: most('steadyChanges'),
    changes: most('changes'),
    fewest: Math.min(...outcomes.map(({ fewest }) => fewest)),
    most: most('most'),
    behindS: round(most('behindS'), 1),
    laterBehindS: round(most('laterBehindS'), 1),
    leavingBehindS: round(most('leavingBehindS'), 1),
  }
}

function tableOf(rows: readonly Row[]): string {
  const heads = [
    'partitions',
    'processes/pod',
    'steady changes',
    'changes',
    'behind s',
    'later s',
    'leaving s',
  ]
  return [
    '',
    `pods over an hour, the worst of loads that take ${shares[0] * 100} to ${(shares.at(-1) ?? 0) * 100} % of all partitions' processes`,
    '',
    rowOf('asked for by', heads),
    ...rows.map((row) =>
      rowOf(row.kind, [
        String(row.partitions),
        String(row.processesPerPod),
        String(row.steadyChanges),
        String(row.changes),
        row.behindS.toFixed(0),
        row.laterBehindS.toFixed(0),
        row.leavingBehindS.toFixed(0),
      ]),
    ),
  ].join('\n')
}
