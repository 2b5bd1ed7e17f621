import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { measure } from './measure.ts'
import { type Played, resultOf } from './result.ts'
import { destinationsOf, ladderOf, type Scene, scenes } from './scenes.ts'
import { simulate } from './simulation.ts'

/**
 * `minutes`: for how many minutes of simulated time messages come in. `rate`: if it is given, only those scenes
 * are simulated in which each sick hook gets this number of messages a second.
 */
export type SickSettings = Settings & { minutes?: number }

/**
 * Measures how many of their messages sick hooks get in four hours. The sick hooks fail 50, 90, 99 and 100 %
 * of their requests, and one never answers. There are healthy hooks too. The benchmark runs a real pipeline
 * on a virtual clock, with every setting at its default, except that one scene has a faster ladder.
 */
export async function runSickBenchmark({ rate, minutes }: SickSettings): Promise<BenchmarkResult> {
  const chosen = rate === undefined ? scenes : scenesAt(rate)
  const played: Played[] = []
  for (const each of chosen) {
    const scene = minutes === undefined ? each : { ...each, feedS: minutes * 60 }
    const simulated = await simulate({
      destinations: destinationsOf(scene),
      settings: { ladder: ladderOf(scene) },
    })
    const { virtualMs, realMs, events } = simulated
    say(
      `${scene.perSecond}/s to each: ${(virtualMs / 3_600_000).toFixed(1)} h in ${Math.round(realMs / 1_000)} s, ${events} events`,
    )
    played.push({ scene, simulated, destinations: measure(simulated) })
  }
  return resultOf(played)
}

const usualMessages = 60_000

/** Returns the scenes of that rate. If there is none, returns a new scene of that rate. */
function scenesAt(perSecond: number): readonly Scene[] {
  const known = scenes.filter((scene) => scene.perSecond === perSecond)
  if (known.length > 0) return known
  return [{ perSecond, feedS: Math.ceil(usualMessages / perSecond), healthyS: 30, ladderTimes: 1 }]
}
