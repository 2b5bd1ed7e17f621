import { round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'
import { say } from '../support/say.ts'
import { openStage } from '../support/stage.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { measureLearned } from './learned.ts'
import { type Burst, drainBurst, type Drained, resumeMany } from './queues.ts'

const fiveASecond = { rateLimit: { perSecond: 5 } }

/** The bursts, by the figure that each gives. */
const bursts: readonly Burst[] = [
  burst('rate_drain_ratio', { count: 300, destination: fiveASecond, idealS: 60 }),
  burst('rate_50_drain_ratio', { count: 10_000, destination: { rateLimit: { perSecond: 50 } }, idealS: 200 }),
  burst('rate_4_drain_ratio', { count: 300, destination: fiveASecond, processes: 4, idealS: 60 }),
  burst('rate_one_user_drain_ratio', {
    count: 300,
    users: 1,
    destination: fiveASecond,
    processes: 4,
    idealS: 60,
  }),
  burst('slow_drain_ratio', { count: 3_000, answerMs: 1_000, idealS: 47 }),
]

const defaultWaiting = 200_000

/**
 * Measures what becomes of a burst that its destination can't take at once, on a real Kafka. The figures are
 * ratios of the time that it takes to the time that a sender without any loss would need.
 */
export async function runBurstBenchmark({
  messages = defaultWaiting,
  runs = 1,
  profileDir,
}: Settings): Promise<BenchmarkResult> {
  const stage = await openStage({ destinations: 1, profileDir, report: say })
  try {
    const drained = new Map<string, Drained>()
    for (const one of bursts) drained.set(one.name, await drainBurst(stage, one))
    const learned = await measureLearned(stage, runs)
    const resumed = await resumeMany(stage, messages)
    const figures = {
      ...Object.fromEntries([...drained].map(([name, { drain_ratio }]) => [name, round(drain_ratio, 3)])),
      ...Object.fromEntries(Object.entries(learned).map(([name, value]) => [name, round(value, 3)])),
      ...Object.fromEntries(Object.entries(resumed).map(([name, value]) => [name, round(value, 3)])),
      bursts: Object.fromEntries(drained),
      node: process.version,
    }
    const table = [
      '',
      rowOf('a burst', ['seconds', 'ratio', 'requests', 'disordered']),
      ...[...drained].map(([name, one]) =>
        rowOf(name, [
          one.drain_s.toFixed(1),
          one.drain_ratio.toFixed(2),
          one.requests_per_message.toFixed(2),
          String(one.disordered),
        ]),
      ),
      '',
      ...Object.entries({ ...learned, ...resumed }).map(([name, value]) =>
        rowOf(name, [String(round(value, 3))]),
      ),
    ].join('\n')
    return { table, figures }
  } finally {
    await stage.close()
  }
}

function burst(name: string, settings: Partial<Burst> & Pick<Burst, 'count' | 'idealS'>): Burst {
  return { name, users: settings.count, destination: {}, answerMs: 0, processes: 1, ...settings }
}
