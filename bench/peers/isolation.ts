import { join } from 'node:path'
import { BenchmarkFailure } from '../support/failure.ts'
import { type LegSender, runLeg } from '../support/leg.ts'
import { measurePairs, type Pair, type SideName } from '../support/pairs.ts'
import { say } from '../support/say.ts'
import { openStage, type ScenePlan, type Stage } from '../support/stage.ts'
import type { Stream } from '../support/streams.ts'
import { percent } from '../support/table.ts'
import { inFlight } from '../worker/setting.ts'
import { type IsolatedName, isolatedNames } from './names.ts'
import { startPeer, writeUrls } from './peer.ts'
import type { Program, ProgramName } from './programs.ts'
import { type Side, sideOf } from './side.ts'

export const deadShare = 0.1

/**
 * Returns the warm-up in seconds. It is longer than a minute for the default length of a run, because the
 * worker reads its first parked messages again after a minute.
 */
export function warmupOf(seconds: number): number {
  return Math.ceil(2.5 * seconds)
}

const destinations = 100
const plan: ScenePlan = {
  fleet: { count: destinations },
  variables: { SLUICE_DELIVERY_MAX_IN_FLIGHT: String(inFlight) },
}
/** The timeout of a request, as in the worker's defaults. */
const timeoutMs = 5_000
/** How long after the end of the traffic a message may arrive and still count for the p99. */
const drainS = 10

type Load = { ratePerS: number; seconds: number }

/**
 * Measures what a destination that never answers costs the 99 others, for each program that reads from Kafka.
 * The traffic to the others follows the same clock with and without the dead destination. The messages to the
 * dead destination are added to this traffic, and are a tenth of all. On the side with the dead destination,
 * messages to the others may be missing at the end. This is a result, also for the worker. On the side
 * without it, missing messages are a failure of the benchmark.
 */
export async function measureIsolation(
  programs: Readonly<Record<ProgramName, Program>>,
  { runs, profileDir, ...load }: Load & { runs: number; profileDir: string | undefined },
): Promise<Pair<Record<IsolatedName, Side>>[]> {
  const stage = await openStage({ destinations, profileDir, report: say })
  try {
    return await measurePairs(runs, async (side, pair) => {
      const sides: Partial<Record<IsolatedName, Side>> = {}
      for (const name of isolatedNames) {
        sides[name] = await runSide({ stage, programs, name, side }, load)
        say(`pair ${pair}: ${name} ${side} the dead one ${describe(sides[name])}`)
      }
      return allOf(sides)
    })
  } finally {
    await stage.close()
  }
}

type Run = {
  stage: Stage
  programs: Readonly<Record<ProgramName, Program>>
  name: IsolatedName
  side: SideName
}

async function runSide({ stage, programs, name, side }: Run, { ratePerS, seconds }: Load): Promise<Side> {
  const fromS = warmupOf(seconds)
  const untilS = fromS + seconds
  const time = { fromS: 0, untilS, order: 'turn' } as const
  const healthyPerS = ratePerS * (1 - deadShare)
  const healthy: Stream = { first: 1, count: destinations - 1, perS: healthyPerS, ...time }
  const dead: Stream = { first: 0, count: 1, perS: ratePerS * deadShare, ...time }
  const leg = await runLeg(stage, {
    name: `${name} ${side} the dead one`,
    ...(name !== 'worker' && { sender: senderOf(name, programs[name], stage) }),
    plan,
    streams: side === 'with' ? [healthy, dead] : [healthy],
    special: [{ destination: 0, answerAfterMs: 'never' }],
    fromS,
    untilS,
    maxLateMs: 100,
    drainS,
    mayMiss: side === 'with',
  })
  const { report, othersShare } = leg
  const measured = sideOf(report.others, { producedPerS: healthyPerS, seconds, othersShare })
  if (side === 'without' && measured.perS < healthyPerS * 0.98) {
    throw new BenchmarkFailure(
      `${name}: without the dead one, ${Math.round(measured.perS)} of ${Math.round(healthyPerS)} messages a second came: the machine is too busy`,
    )
  }
  return measured
}

/**
 * Returns a sender that runs one of the programs. The programs don't sign. The topic and the group are new.
 */
function senderOf(name: ProgramName, program: Program, stage: Stage): LegSender {
  const urlsFile = join(stage.folder, 'urls')
  writeUrls(urlsFile, destinations, (number) => stage.recorder.urlOf(number))
  const outputFile = join(stage.folder, `${name}.log`)
  const task = { brokers: stage.brokers, urlsFile, inFlight, timeoutMs, outputFile }
  return {
    signs: false,
    start: ({ topic }) => startPeer(program, { ...task, topic, group: `${topic}-${name}` }),
  }
}

function allOf(sides: Partial<Record<IsolatedName, Side>>): Record<IsolatedName, Side> {
  const of = (name: IsolatedName): Side => {
    const side = sides[name]
    if (side === undefined) throw new BenchmarkFailure(`${name} was not measured`)
    return side
  }
  return { worker: of('worker'), 'franz-go': of('franz-go'), 'parallel-consumer': of('parallel-consumer') }
}

function describe({ perS, p99Ms, othersShare }: Side): string {
  const p99 = p99Ms === undefined ? 'no p99' : `p99 ${p99Ms.toFixed(1)} ms`
  return `${Math.round(perS)}/s to the others, ${p99}, ${percent(othersShare)} of the machine used by others`
}
