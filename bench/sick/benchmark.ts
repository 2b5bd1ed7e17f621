import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { measure } from './measure.ts'
import { type Played, resultOf } from './result.ts'
import { destinationsOf, ladderOf, type Scene, scenes } from './scenes.ts'
import { simulate } from './simulation.ts'

/** `minutes`: how long messages come. `rate`: to each sick hook, a second; there is that scene alone then. */
export type SickSettings = Settings & { minutes?: number }

/**
 * What sick hooks get of their messages in four hours: those that fail 50, 90, 99 and 100 % of requests, and one that never answers, beside
 * healthy ones. One real pipeline on a virtual clock, with every setting at its default.
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

/** Those of that rate, or one of its own. */
function scenesAt(perSecond: number): readonly Scene[] {
  const known = scenes.filter((scene) => scene.perSecond === perSecond)
  if (known.length > 0) return known
  return [{ perSecond, feedS: Math.ceil(usualMessages / perSecond), healthyS: 30, ladderTimes: 1 }]
}
