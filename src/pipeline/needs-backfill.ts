import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { Account } from './account.ts'
import type { Delivery } from './delivery.ts'
import type { PipelineOptions } from './pipeline-ports.ts'

type BackfillNeedsOptions = Pick<PipelineOptions, 'needsBackfill'> & { readonly account: Account }

/**
 * Tells which destinations need a backfill, since they missed a value of a property: it ended in the dead
 * letters, wasn't routed to them, or was superseded by one that went to others. Who hears it keeps the mark
 * (`src/backfill/mark-keeper.ts`). Holds no state of its own.
 */
export class BackfillNeeds {
  readonly #options: BackfillNeedsOptions

  constructor(options: BackfillNeedsOptions) {
    this.#options = options
  }

  /** Tells that the destination of the delivery needs a backfill, where what it missed is of a property. */
  tellOf({ destinationId, property, pending }: Delivery): void {
    if (property === undefined) return
    const marked = this.#options.needsBackfill?.(destinationId, property.spaceId)
    if (marked !== undefined) this.#options.account.settleAfterNote(marked, pending)
  }

  /**
   * Tells that the destinations need a backfill that are connected to a space and don't get a value of it.
   * Each promise resolves once that is on record.
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
