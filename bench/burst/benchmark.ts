import { chosenRows } from '../support/chosen-rows.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { openStage, type Stage } from '../support/stage.ts'
import { round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'
import { besideDestinations, measureBeside } from './beside-queues.ts'
import { measureRecall } from './called-back.ts'
import { measureLearned } from './learned.ts'
import { measureLanes, measureOneLane } from './million.ts'
import { type Burst, drainBurst, resumeMany } from './queues.ts'
import { measureSingles } from './singles.ts'

export type BurstSettings = Settings & {
  /** The names of the rows to measure, separated by commas. Missing: all. */
  only?: string | undefined
}

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
const million = 1_000_000
const recalled = 100_000
const singles = 100_000

type Figures = Record<string, unknown>

/** A part of the benchmark that can be run alone. */
type Row = {
  readonly name: string
  /** The destinations that it needs. Missing: 1. */
  readonly destinations?: number
  run(stage: Stage, settings: BurstSettings): Promise<Figures>
}

const rows: readonly Row[] = [
  ...bursts.map((one): Row => ({
    name: one.name,
    async run(stage) {
      const drained = await drainBurst(stage, one)
      return { [one.name]: drained.drain_ratio, bursts: { [one.name]: drained } }
    },
  })),
  { name: 'learned', run: (stage, { runs = 1 }) => measureLearned(stage, runs) },
  { name: 'resume', run: (stage, { messages = defaultWaiting }) => resumeMany(stage, messages) },
  { name: 'million', run: ({ brokers }, { messages = million }) => measureOneLane(brokers, messages) },
  { name: 'lanes', run: ({ brokers }, { messages = million }) => measureLanes(brokers, messages) },
  { name: 'singles', run: ({ brokers }, { messages = singles }) => measureSingles(brokers, messages) },
  {
    name: 'beside',
    destinations: besideDestinations,
    run: (stage, { runs = 5, seconds = 20, rate = 2_000 }) => measureBeside(stage, { runs, seconds, rate }),
  },
  { name: 'recall', run: (stage, { messages = recalled }) => measureRecall(stage, messages) },
]

/**
 * Measures what becomes of messages that a destination can't take at once, and what waiting costs, on a real
 * Kafka. The figures of bursts are ratios of the time that they take to the time that a sender without any
 * loss would need.
 */
export async function runBurstBenchmark(settings: BurstSettings): Promise<BenchmarkResult> {
  const chosen = chosenRows(rows, settings.only)
  const destinations = Math.max(...chosen.map((row) => row.destinations ?? 1))
  const stage = await openStage({ destinations, profileDir: settings.profileDir, report: say })
  const figures: Figures = {}
  const details: Figures = {}
  try {
    for (const row of chosen) {
      const { bursts: detail, ...measured } = await row.run(stage, settings)
      Object.assign(figures, measured)
      Object.assign(details, detail)
    }
  } finally {
    await stage.close()
  }
  const rounded = Object.entries(figures).map(([name, value]): [string, unknown] => [
    name,
    typeof value === 'number' ? round(value, 4) : value,
  ])
  const table = ['', ...rounded.map(([name, value]) => rowOf(name, [String(value)]))].join('\n')
  return { table, figures: { ...Object.fromEntries(rounded), bursts: details, node: process.version } }
}

function burst(name: string, settings: Partial<Burst> & Pick<Burst, 'count' | 'idealS'>): Burst {
  return { name, users: settings.count, destination: {}, answerMs: 0, processes: 1, ...settings }
}
