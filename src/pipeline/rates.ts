import type { GroupShare } from '../delivery/group-share.ts'
import type { Lanes } from '../delivery/lanes/lanes-ports.ts'
import type { Delivery } from './delivery.ts'
import type { PipelineOptions, Rates, WaitingQueue } from './pipeline-ports.ts'

type RatesOptions = Pick<PipelineOptions, 'catalog'> & {
  readonly groupShare: GroupShare
  readonly lanes: Lanes<Delivery>
  readonly queue: WaitingQueue | undefined
}

/** What starts within this time, in seconds, needs no higher rate. */
const soonS = 1

/** Looks at the destinations' rate limits in this member. Holds no state. */
export function ratesOf({ catalog, groupShare, lanes, queue }: RatesOptions): Rates {
  function waitingOf(destinationId: string): number {
    const inQueue = queue && queue.countOf(destinationId) + queue.wantedOf(destinationId)
    return lanes.queuedIn(destinationId) + (inQueue ?? 0)
  }
  return {
    *waiting() {
      const { destinations } = catalog()
      for (const id of lanes.rated()) if (destinations.get(id)?.rateLimit !== undefined) yield id
    },
    needOf(destinationId) {
      const destination = catalog().destinations.get(destinationId)
      const rate = groupShare.rateOf(destination)
      // A rate limit counts requests, so a batch takes one of them.
      const waiting = Math.ceil(waitingOf(destinationId) / (destination?.batch?.maxMessages ?? 1))
      return rate === undefined || waiting <= rate.perSecond * soonS ? 0 : waiting
    },
    isSpare: (destinationId) => lanes.isSpare(destinationId) && waitingOf(destinationId) === 0,
    lowered: (destinationId) => lanes.renewLimits(destinationId),
  }
}
