import type { ParkReason, PipelineObserver } from '../pipeline/pipeline-ports.ts'
import type { Reporter } from './reporter.ts'

/** The reasons for which a delivery goes to the ladder after its turn. */
const afterItsTurn: ReadonlySet<ParkReason> = new Set<ParkReason>(['failed', 'not_before', 'paced', 'proxy'])

/** Returns callbacks of the pipeline that tell the reporter which deliveries have had their turn. */
export function departuresTo(reporter: Pick<Reporter, 'left'>): Partial<PipelineObserver> {
  return {
    delivered: ({ destinationId }) => reporter.left(destinationId),
    dropped: ({ destinationId }) => reporter.left(destinationId),
    parked({ destinationId }, why) {
      if (afterItsTurn.has(why)) reporter.left(destinationId)
    },
    deadLettered(_reason, _detail, _where, delivery) {
      if (delivery !== undefined) reporter.left(delivery.destinationId)
    },
  }
}
