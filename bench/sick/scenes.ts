import type { Ladder } from '../../src/retry/ladder.ts'
import { failing, healthy, type HookModel, silent } from './hook-models.ts'
import type { Feed } from './feed.ts'
import { defaultSettings, type SimulatedDestination } from './simulation.ts'

/** Hooks that are sick all the time, each of a destination of its own, beside healthy ones. */
export type Scene = {
  /** Messages a second to each sick hook. */
  readonly perSecond: number
  /** How long messages come. The hooks stay as they are until the ladder of the last message is over. */
  readonly feedS: number
  /** How long messages come to the healthy ones, each time that they do. */
  readonly healthyS: number
  /** How many times as fast the ladder is. Its tries are as many, so as much comes a second as does after hours of a slow one. */
  readonly ladderTimes: number
}

/** 72,000 messages to each hook, or 60,000: enough that a hundredth of what is delivered is told from chance. */
export const scenes: readonly Scene[] = [
  { perSecond: 5, feedS: 4 * 3_600, healthyS: 30, ladderTimes: 1 },
  { perSecond: 50, feedS: 20 * 60, healthyS: 30, ladderTimes: 1 },
  { perSecond: 500, feedS: 2 * 60, healthyS: 30, ladderTimes: 1 },
  // All is there at the same time: first tries, those in between, and last ones.
  { perSecond: 50, feedS: 8 * 60, healthyS: 30, ladderTimes: 60 },
]

const deadlineMs = 5_000

export const sickModels: readonly HookModel[] = [
  failing(0.5),
  failing(0.9),
  failing(0.99),
  failing(1),
  silent(deadlineMs),
]

/** The default ladder, as many times as fast as the scene says. */
export function ladderOf({ ladderTimes }: Scene): Ladder {
  const { waitsMs, thenMs, limitMs } = defaultSettings().ladder
  return {
    waitsMs: waitsMs.map((waitMs) => waitMs / ladderTimes),
    thenMs: thenMs / ladderTimes,
    limitMs: limitMs / ladderTimes,
  }
}

const healthyCount = 10
/** So many times the messages of all sick ones together, as far as one process can carry that. */
const healthyTimes = 10
const mostHealthyPerSecond = 5_000

export function destinationsOf({
  perSecond,
  feedS,
  healthyS,
  ladderTimes,
}: Scene): readonly SimulatedDestination[] {
  const feed: readonly Feed[] = [{ fromS: 0, untilS: feedS, perSecond }]
  const sick = sickModels.map((model) => ({ id: idOf(model), hooks: [model], feed }))
  const allHealthy = Math.min(perSecond * sickModels.length * healthyTimes, mostHealthyPerSecond)
  const windows = startsOfHealthy({ feedS, healthyS, ladderTimes }).map((fromS) => ({
    fromS,
    untilS: fromS + healthyS,
    perSecond: allHealthy / healthyCount,
  }))
  const well = Array.from({ length: healthyCount }, (_, at) => ({
    id: `healthy-${at}`,
    hooks: [healthy],
    feed: windows,
  }))
  return [...sick, ...well]
}

/**
 * When healthy destinations get messages, in seconds; all of the time would take minutes, and what the sick ones do to them is seen as
 * well: while they fall sick, while they are, and an hour after, when most of what was parked comes back.
 */
function startsOfHealthy({ feedS, healthyS, ladderTimes }: Omit<Scene, 'perSecond'>): readonly number[] {
  const hourLater = (3_600 + 600 + 60) / ladderTimes
  return [0, Math.max(healthyS, Math.round(feedS / 2)), Math.max(feedS, hourLater, 3 * healthyS)]
}

function idOf({ name }: HookModel): string {
  return name.replaceAll(/[^a-z0-9]+/g, '-').replace(/-$/, '')
}
