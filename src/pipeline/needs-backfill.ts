import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { BufferAccount } from './buffer-account.ts'
import type { Delivery } from './delivery.ts'
import type { PipelineOptions } from './pipeline-ports.ts'

type BackfillNeedsOptions = Pick<PipelineOptions, 'needsBackfill'> & { readonly account: BufferAccount }

/**
 * Reports the destinations that need a backfill because they missed a value of a property. A destination
 * misses a value if the value became a dead letter, wasn't routed to the destination, or was superseded by a
 * value that was sent only to other destinations. `src/backfill/mark-keeper.ts` keeps a mark for each such
 * destination. This class holds no state.
 */
export class BackfillNeeds {
  readonly #options: BackfillNeedsOptions

  constructor(options: BackfillNeedsOptions) {
    this.#options = options
  }

  /** Reports that the destination of a delivery needs a backfill, if the delivery has a property. */
  tellOf({ destinationId, property, pending }: Delivery): void {
    if (property === undefined) return
    const marked = this.#options.needsBackfill?.(destinationId, property.spaceId)
    if (marked !== undefined) this.#options.account.settleAfterNote(marked, pending)
  }

  /**
   * Reports the destinations that are connected to a space but don't get one of its values. Returns a promise
   * for each mark that must be written. The promise resolves once the mark is written.
   */
  tellOfUnrouted(
    connected: readonly DestinationDefinition[],
    routed: readonly DestinationDefinition[],
    spaceId: string,
  ): readonly Promise<void>[] {
    return connected.flatMap((destination) => {
      const marked = routed.includes(destination)
        ? undefined
        : this.#options.needsBackfill?.(destination.id, spaceId)
      return marked ?? []
    })
  }
}
