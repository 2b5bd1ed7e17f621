import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { LaneClass } from '../delivery/lane.ts'
import type { Way } from './attempt.ts'
import type { Delivery, LaneTerms } from './delivery.ts'
import type { FirstTryWay } from './pipeline-ports.ts'

/**
 * Returns how a delivery travels in its lane. `share`: the part of the group's partitions that is ours, 0 to
 * 1.
 */
export function laneTermsOf(
  destination: DestinationDefinition | undefined,
  laneClass: LaneClass,
  share: number,
): LaneTerms {
  const limit = destination?.rateLimit
  const rate =
    limit === undefined || share === 0
      ? undefined
      : {
          perSecond: limit.perSecond * share,
          burst: Math.max(1, Math.floor(limit.burst * share)),
        }
  return { cap: destination?.maxInFlight ?? 1, laneClass, rate }
}

export function firstTryWay({ laneClass }: Delivery, way: Way): FirstTryWay {
  switch (laneClass) {
    case 'fresh':
      return way === 'open' ? 'direct' : 'paced'
    case 'retry':
      return 'parked'
    case 'backfill':
      return 'replayed'
  }
}
