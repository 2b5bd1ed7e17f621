import { BenchmarkFailure } from '../support/failure.ts'
import { percentile } from '../support/statistics.ts'
import { type Blocked, longestOf } from './blocks.ts'
import { editOf, made } from './edits.ts'
import { elsewhere } from './elsewhere.ts'
import { type Followers, type Stage, startFollowers } from './stage.ts'

/** Three workers and two gateways. */
const followers = 5
const singles = 200
/** The objects of an import. */
const imported = 100_000

type Live = Burst & {
  readonly answeredP50Ms: number
  readonly liveP99Ms: number
  readonly followers: number
}

type Burst = {
  /** How long it takes until all changes are made, and until they are in force, in seconds. */
  readonly burstS: number
  readonly usedS: number
  readonly blocked: Blocked
}

/** Measures single changes, and a burst of them, beside several followers. */
export async function measureLive(stage: Stage, puts: number): Promise<Live> {
  const { desk } = stage
  const running = await startFollowers(stage, { name: 'live', count: followers })
  try {
    const answered: number[] = []
    const live: number[] = []
    for (let change = 0; change < singles; change++) {
      const startedMs = performance.now()
      const revision = await made(desk, [editOf(`single-${change % 10}`, change)])
      answered.push(performance.now() - startedMs)
      await running.allUse(revision)
      live.push(performance.now() - startedMs)
    }
    const burst = await measureBurst(stage, running, { puts, prefix: 'put' })
    return {
      ...burst,
      answeredP50Ms: percentile(sorted(answered), 0.5),
      liveP99Ms: percentile(sorted(live), 0.99),
      followers,
    }
  } finally {
    await running.stop()
  }
}

/** Measures a burst beside one follower, so that not seven programs want two processors. */
export async function measureAlone(stage: Stage, puts: number): Promise<Burst> {
  const running = await startFollowers(stage, { name: 'alone', count: 1 })
  try {
    return await measureBurst(stage, running, { puts, prefix: 'alone' })
  } finally {
    await running.stop()
  }
}

async function measureBurst(
  { desk }: Stage,
  running: Followers,
  { puts, prefix }: { readonly puts: number; readonly prefix: string },
): Promise<Burst> {
  const { all } = running
  for (const one of all) await one.blocked()
  const startedMs = performance.now()
  const edits = Array.from({ length: puts }, (_, index) => editOf(`${prefix}-${index}`, 0))
  const revisions = await elsewhere(() => Promise.all(edits.map((edit) => made(desk, [edit]))))
  const burstS = (performance.now() - startedMs) / 1_000
  await running.allUse(Math.max(...revisions))
  const usedS = (performance.now() - startedMs) / 1_000
  const blocked = await Promise.all(all.map((one) => one.blocked()))
  if (blocked.some(({ destinations }) => destinations < puts))
    throw new BenchmarkFailure('a follower lacks destinations')
  return { burstS, usedS, blocked: longestOf(blocked) }
}

type Import = { readonly importS: number; readonly usedS: number; readonly blocked: Blocked }

/** Imports a large catalog in one change, beside a follower. */
export async function measureImport(stage: Stage): Promise<Import> {
  const running = await startFollowers(stage, { name: 'import', count: 1 })
  try {
    for (const one of running.all) await one.blocked()
    const startedMs = performance.now()
    const edits = Array.from({ length: imported }, (_, index) => editOf(`import-${index}`, 0))
    const revision = await made(stage.desk, edits)
    const importS = (performance.now() - startedMs) / 1_000
    await running.allUse(revision)
    const usedS = (performance.now() - startedMs) / 1_000
    const blocked = await Promise.all(running.all.map((one) => one.blocked()))
    if (blocked.some(({ destinations }) => destinations < imported))
      throw new BenchmarkFailure('the follower lacks destinations')
    return { importS, usedS, blocked: longestOf(blocked) }
  } finally {
    await running.stop()
  }
}

function sorted(values: readonly number[]): Float64Array {
  return Float64Array.from(values).toSorted()
}
