import type { Ladder } from '../../src/retry/ladder.ts'
import { failing, healthy, type HookModel, silent } from './hook-models.ts'
import type { Feed } from './feed.ts'
import { defaultSettings, type SimulatedDestination } from './simulation.ts'

/** A scene with hooks that are sick all the time, each of a separate destination, and with healthy hooks. */
export type Scene = {
  /** The number of messages a second to each sick hook. */
  readonly perSecond: number
  /** How long messages arrive. The hooks stay sick until the ladder of the last message is over. */
  readonly feedS: number
  /** The length of each of the periods in which messages arrive for the healthy hooks. */
  readonly healthyS: number
  /**
   * The factor by which the ladder is faster than the default. A faster ladder has the same number of tries.
   * So after a short time there are as many tries a second as after hours with the default ladder.
   */
  readonly ladderTimes: number
}

/**
 * The scenes of the benchmark. Each sick hook gets 72,000 messages in the first scene, 60,000 in the second
 * and the third, and 24,000 in the last. With 60,000 messages, a difference of a hundredth of the delivered
 * messages can be told from chance.
 */
export const scenes: readonly Scene[] = [
  { perSecond: 5, feedS: 4 * 3_600, healthyS: 30, ladderTimes: 1 },
  { perSecond: 50, feedS: 20 * 60, healthyS: 30, ladderTimes: 1 },
  { perSecond: 500, feedS: 2 * 60, healthyS: 30, ladderTimes: 1 },
  // With the fast ladder, first tries, later tries and last tries happen at the same time.
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

/** Returns the default ladder with its times divided by `ladderTimes`. */
export function ladderOf({ ladderTimes }: Scene): Ladder {
  const { waitsMs, thenMs, limitMs } = defaultSettings().ladder
  return {
    waitsMs: waitsMs.map((waitMs) => waitMs / ladderTimes),
    thenMs: thenMs / ladderTimes,
    limitMs: limitMs / ladderTimes,
  }
}

const healthyCount = 10
/**
 * The messages to all healthy destinations, as a multiple of the messages to all sick ones. The rate is
 * limited to what one process can deliver.
 */
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
 * Returns the starts of the periods in which healthy destinations get messages, in seconds. Messages all the
 * time would make the simulation take minutes. Three periods show the effects of the sick hooks as well: when
 * the hooks become sick, while they are sick, and an hour later, when most parked messages come back.
 */
function startsOfHealthy({ feedS, healthyS, ladderTimes }: Omit<Scene, 'perSecond'>): readonly number[] {
  const hourLater = (3_600 + 600 + 60) / ladderTimes
  return [0, Math.max(healthyS, Math.round(feedS / 2)), Math.max(feedS, hourLater, 3 * healthyS)]
}

function idOf({ name }: HookModel): string {
  return name.replaceAll(/[^a-z0-9]+/g, '-').replace(/-$/, '')
}
