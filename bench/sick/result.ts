import type { BenchmarkResult } from '../support/settings.ts'
import { round } from '../support/statistics.ts'
import { percent, rowOf } from '../support/table.ts'
import { failing, healthy } from './hook-models.ts'
import type { DestinationMeasure, HookMeasure } from './measure.ts'
import type { Scene } from './scenes.ts'
import type { Simulated } from './simulation.ts'

export type Played = {
  scene: Scene
  simulated: Simulated
  destinations: readonly DestinationMeasure[]
}

/** Returns the result. Each figure is the worst of all scenes, and the figures contain each scene too. */
export function resultOf(played: readonly Played[]): BenchmarkResult {
  const sick = played.flatMap(({ destinations }) => sickOf(destinations).flatMap(({ hooks }) => hooks))
  const figures = {
    untried: sick.reduce((sum, { untried }) => sum + untried, 0),
    delivered_ratio_50: round(Math.min(...of(sick, failing(0.5).name, 'deliveredRatio')), 4),
    delivered_ratio_90: round(Math.min(...of(sick, failing(0.9).name, 'deliveredRatio')), 4),
    ...requestsByRate(played),
    scenes: played.map((one) => figuresOf(one)),
    node: process.version,
  }
  return { table: ['', ...played.flatMap((one) => [...tableOf(one), ''])].join('\n'), figures }
}

/**
 * Returns the requests for each message to a hook that fails all requests, at the lowest and at the highest rate of
 * the scenes with the usual ladder.
 */
function requestsByRate(played: readonly Played[]): Record<string, number> {
  const usual = played.filter(({ scene }) => scene.ladderTimes === 1)
  const rates = usual.map(({ scene }) => scene.perSecond)
  return Object.fromEntries(
    [...new Set([Math.min(...rates), Math.max(...rates)])].map((rate) => {
      const hooks = usual
        .filter(({ scene }) => scene.perSecond === rate)
        .flatMap(({ destinations }) => sickOf(destinations).flatMap((destination) => destination.hooks))
      const each = of(hooks, failing(1).name, 'requestsEach')
      return [`requests_per_message_100_at_${rate}`, round(Math.max(...each), 3)]
    }),
  )
}

function of(
  hooks: readonly HookMeasure[],
  model: string,
  figure: 'deliveredRatio' | 'requestsEach',
): readonly number[] {
  return hooks.filter((hook) => hook.model === model).map((hook) => hook[figure] ?? Number.NaN)
}

function isHealthy({ hooks }: DestinationMeasure): boolean {
  return hooks.every(({ model }) => model === healthy.name)
}

function sickOf(destinations: readonly DestinationMeasure[]): readonly DestinationMeasure[] {
  return destinations.filter((destination) => !isHealthy(destination))
}

/**
 * Returns the sums of the messages and parked records of all healthy destinations, and the largest of their
 * times.
 */
function healthyOf(destinations: readonly DestinationMeasure[]): {
  messages: number
  parked: number
  p99Ms: number
  mostMs: number
} {
  const well = destinations.filter((destination) => isHealthy(destination))
  const hooks = well.flatMap((destination) => destination.hooks)
  return {
    messages: well.reduce((sum, { messages }) => sum + messages, 0),
    parked: Math.round(well.reduce((sum, { parkedEach, messages }) => sum + parkedEach * messages, 0)),
    p99Ms: Math.max(...hooks.map(({ firstTryMs }) => firstTryMs.p99)),
    mostMs: Math.max(...hooks.map(({ firstTryMs }) => firstTryMs.most)),
  }
}

function figuresOf({ scene, simulated, destinations }: Played): object {
  const { messages, parked, p99Ms, mostMs } = healthyOf(destinations)
  return {
    per_second: scene.perSecond,
    feed_s: scene.feedS,
    ladder_times: scene.ladderTimes,
    virtual_h: round(simulated.virtualMs / 3_600_000, 2),
    took_s: round(simulated.realMs / 1_000, 1),
    held_most: simulated.heldMost,
    in_flight_most: simulated.inFlightMost,
    busy_share: round(simulated.busyShare, 4),
    healthy: {
      messages,
      parked,
      first_try_p99_ms: round(p99Ms, 1),
      first_try_most_ms: round(mostMs, 1),
    },
    sick: sickOf(destinations).map(({ id, hooks, parkedEach, dead, unfinished }) => ({
      id,
      parked_per_message: round(parkedEach, 2),
      dead,
      unfinished,
      hooks: hooks.map((hook) => ({
        model: hook.model,
        messages: hook.messages,
        untried: hook.untried,
        delivered_share: round(hook.taken / hook.messages, 4),
        ...(hook.deliveredRatio !== undefined && { delivered_ratio: round(hook.deliveredRatio, 4) }),
        requests_per_message: round(hook.requestsEach, 3),
        patient_requests_per_message: round(hook.patientRequestsEach, 3),
        first_try_p50_s: round(hook.firstTryMs.p50 / 1_000, 1),
        first_try_p99_s: round(hook.firstTryMs.p99 / 1_000, 1),
        in_flight_most: hook.inFlightMost,
      })),
    })),
  }
}

function tableOf({ scene, simulated, destinations }: Played): readonly string[] {
  const { messages, parked, p99Ms, mostMs } = healthyOf(destinations)
  const { virtualMs, realMs, heldMost, inFlightMost, busyShare } = simulated
  return [
    `${scene.perSecond} messages a second to each for ${Math.round(scene.feedS / 60)} min${scene.ladderTimes === 1 ? '' : `, the ladder ${scene.ladderTimes} times as fast`}; ${(virtualMs / 3_600_000).toFixed(1)} h simulated in ${Math.round(realMs / 1_000)} s`,
    `held at most ${heldMost}, in flight ${inFlightMost}, the process busy for ${percent(busyShare)} of its time`,
    `healthy: ${messages} messages, append to first try p99 ${p99Ms.toFixed(1)} ms, at most ${mostMs.toFixed(1)} ms, ${parked} parked`,
    rowOf('hook', [
      'messages',
      'untried',
      'delivered',
      'of patient',
      'requests each',
      'patient',
      'first try p50',
      'p99',
      'parked each',
      'in flight',
      'unfinished',
    ]),
    ...sickOf(destinations).flatMap((destination) =>
      destination.hooks.map((hook) => rowOf(hook.model, cellsOf(hook, destination))),
    ),
    ...sickOf(destinations).map(({ id, dead }) => `dead letters of ${id}: ${JSON.stringify(dead)}`),
  ]
}

function cellsOf(hook: HookMeasure, { parkedEach, unfinished }: DestinationMeasure): readonly string[] {
  return [
    String(hook.messages),
    String(hook.untried),
    `${((100 * hook.taken) / hook.messages).toFixed(2)} %`,
    hook.deliveredRatio?.toFixed(4) ?? '',
    hook.requestsEach.toFixed(3),
    hook.patientRequestsEach.toFixed(3),
    `${(hook.firstTryMs.p50 / 1_000).toFixed(1)} s`,
    `${(hook.firstTryMs.p99 / 1_000).toFixed(1)} s`,
    parkedEach.toFixed(2),
    String(hook.inFlightMost),
    String(unfinished),
  ]
}
