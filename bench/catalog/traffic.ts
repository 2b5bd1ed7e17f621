import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newKeyLine } from '../../src/catalog-log/keys.ts'
import type { Edit } from '../../src/catalog-log/judge.ts'
import { readConfig } from '../../src/config/read.ts'
import { openCatalogDesk, type OpenedDesk } from '../../src/roles/operations/catalog-desk.ts'
import { measureCapacity } from '../isolation/capacity.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { type Leg, type LegResult, runLeg } from '../support/leg.ts'
import { measurePairs, type SideName } from '../support/pairs.ts'
import { say } from '../support/say.ts'
import type { Settings } from '../support/settings.ts'
import { openStage, type Scene, type ScenePlan, type Stage } from '../support/stage.ts'
import { destinationIdOf, sourceIdOf, type Stream } from '../support/streams.ts'
import { percentile } from '../support/statistics.ts'
import { sharedSecret } from '../support/worker-variables.ts'
import { editOf, made } from './edits.ts'
import { elsewhere } from './elsewhere.ts'

export type Traffic = {
  readonly ratePerS: number
  /** The median over the pairs, of the p99 with the burst by that without. */
  readonly p99Ratio: number
  readonly p99Ms: number
}

const destinations = 50
const warmupS = 15

/**
 * Measures what a burst of changes costs the messages of a worker at half load. A pair is a run with the burst
 * and a run without.
 */
export async function measureTraffic({
  runs = 3,
  seconds = 20,
  messages = 40_000,
  rate,
  puts,
  profileDir,
}: Settings & { readonly puts: number }): Promise<Traffic> {
  const stage = await openStage({ destinations, profileDir, report: say })
  try {
    const plan = { fleet: { count: destinations }, variables: {} }
    const capacity = rate ?? (await measureCapacity(stage, { plan, messages, first: 0 })).shared
    const ratePerS = capacity / 2
    const pairs = await measurePairs(runs, async (side, pair) => {
      const { p99 } = (await runSide(stage, side, { ratePerS, seconds, puts })).report.others.latency
      say(`pair ${pair}: ${side} the burst p99 ${p99.toFixed(1)} ms`)
      return p99
    })
    const ratios = Float64Array.from(pairs.map((pair) => pair.with / pair.without)).toSorted()
    const p99s = Float64Array.from(pairs.map((pair) => pair.with)).toSorted()
    return { ratePerS, p99Ratio: percentile(ratios, 0.5), p99Ms: percentile(p99s, 0.5) }
  } finally {
    await stage.close()
  }
}

async function runSide(
  stage: Stage,
  side: SideName,
  { ratePerS, seconds, puts }: { ratePerS: number; seconds: number; puts: number },
): Promise<LegResult> {
  const untilS = warmupS + seconds
  const streams: readonly Stream[] = [
    { first: 0, count: destinations, perS: ratePerS, fromS: 0, untilS, order: 'turn' },
  ]
  const desks: OpenedDesk[] = []
  const leg: Leg = {
    name: `${side} the burst`,
    plan: planOf(stage),
    sender: {
      signs: true,
      async start(scene) {
        desks.push(await deskWith(stage, scene))
        return scene.startWorker()
      },
    },
    streams,
    special: [],
    fromS: warmupS,
    untilS,
    maxLateMs: 200,
    drainS: 60,
    async atWindow() {
      if (side === 'with') await Promise.all(desks.slice(-1).map((desk) => burst(desk, puts)))
    },
  }
  try {
    return await runLeg(stage, leg)
  } finally {
    await Promise.all(desks.map((desk) => desk.close()))
  }
}

function planOf({ folder }: Stage): ScenePlan {
  const keysFile = join(folder, 'keys')
  writeFileSync(keysFile, newKeyLine())
  const variables = { SLUICE_CATALOG_SOURCE: 'topic', SLUICE_CATALOG_KEYS_FILE: keysFile }
  return { fleet: { count: destinations }, variables }
}

/** Puts the destinations of the traffic into the topic, and a source without traffic. */
async function deskWith({ recorder }: Stage, { variables }: Scene): Promise<OpenedDesk> {
  const config = readConfig({ env: variables })
  if (!config.ok) throw new BenchmarkFailure(config.message)
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  const desk = await openCatalogDesk(config.config, silent, 'admin')
  const numbers = Array.from({ length: destinations }, (_, number) => number)
  const sources = ['shop', ...numbers.map(sourceIdOf)]
  await made(desk, [
    ...sources.map((id): Edit => ({ name: { kind: 'source', id }, op: 'put', given: { id } })),
    ...numbers.map((number): Edit => {
      const id = destinationIdOf(number)
      const hooks = [{ url: recorder.urlOf(number) }]
      const given = { id, sources: [sourceIdOf(number)], sharedSecret, hooks }
      return { name: { kind: 'destination', id }, op: 'put', given }
    }),
  ])
  return desk
}

async function burst(desk: OpenedDesk, puts: number): Promise<void> {
  await elsewhere(() =>
    Promise.all(Array.from({ length: puts }, (_, index) => made(desk, [editOf(`put-${index}`, 0)]))),
  )
}
