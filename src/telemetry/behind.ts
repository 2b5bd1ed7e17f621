import type { Logger } from 'pino'
import type { Metrics } from './metrics.ts'

/**
 * Says which destinations have missed a value of a space and need a backfill: the metric goes up, and each pair is one line of
 * the log. It may be told of the same ones as often as they miss something.
 */
export function createBehind({
  metrics: { needsBackfill, perDestination },
  log,
}: {
  metrics: Pick<Metrics, 'needsBackfill' | 'perDestination'>
  log: Logger
}): { mark(destinationId: string, spaceId: string): void } {
  const spacesOf = new Map<string, Set<string>>()
  return {
    mark(destinationId, spaceId) {
      const spaces = spacesOf.get(destinationId)
      if (spaces?.has(spaceId) === true) return
      if (spaces === undefined) {
        spacesOf.set(destinationId, new Set([spaceId]))
        needsBackfill.inc(perDestination ? { destination: destinationId } : {})
      } else spaces.add(spaceId)
      log.warn({ destination: destinationId, space: spaceId }, 'the destination needs a backfill')
    },
  }
}
