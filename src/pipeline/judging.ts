import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { Judgement } from '../message/judgement.ts'
import type { Account } from './account.ts'
import type { Delivery } from './delivery.ts'
import type { Exits } from './exits.ts'
import type { BackfillNeeds } from './needs-backfill.ts'
import type { PipelineOptions } from './pipeline-ports.ts'

type JudgingOptions = Pick<PipelineOptions, 'catalog' | 'judge' | 'needsJudging' | 'mayBeDeleted'> & {
  readonly account: Account
  readonly backfillNeeds: BackfillNeeds
  readonly exits: Exits
  readonly isDraining: () => boolean
  readonly enqueue: (delivery: Delivery, destination: DestinationDefinition | undefined) => void
  /** It isn't to be delivered here any more. */
  readonly letGo: (delivery: Delivery) => void
}

/**
 * Asks what becomes of deliveries that waited, and does it: a retry that a newer value of its property has
 * superseded is dropped, unless it is uncertain (`src/audience/superseding.ts` says which). Holds no state of
 * its own.
 */
export class Judging {
  readonly #options: JudgingOptions

  constructor(options: JudgingOptions) {
    this.#options = options
  }

  /**
   * Whether a delivery that waited is to be judged. A `delete` is never too late, whoever asks for another.
   */
  isNeededBy({ kind, sourceId, property, pending }: Delivery): boolean {
    const { judge, needsJudging } = this.#options
    if (judge === undefined || kind === 'delete') return false
    const hasProperty = property !== undefined
    return needsJudging?.(sourceId, pending.record.partition, hasProperty) ?? hasProperty
  }

  /** Whether the user of a property may have been deleted since it was judged: rather too often than not. */
  mayBeDeleted({ property, pending }: Delivery): boolean {
    if (property === undefined) return false
    return this.#options.mayBeDeleted?.(property, pending.record.partition) ?? false
  }

  /**
   * One with a property has its ordering key meanwhile: a newer value waits, so what is said now still holds
   * when it is sent.
   */
  async judge(delivery: Delivery): Promise<void> {
    const { account, letGo } = this.#options
    account.begin()
    const judgement = await this.#judgementOf(delivery)
    if (judgement === undefined) letGo(delivery)
    else this.#carryOut(delivery, judgement)
    account.end()
  }

  /**
   * Whether what was delivered still holds: its user may have been deleted after it was judged, so that the
   * `delete` came before it.
   */
  async stillHolds(delivery: Delivery): Promise<boolean> {
    const judgement = await this.#judgementOf(delivery)
    return judgement !== undefined && isOfSame(delivery, judgement)
  }

  /** Nothing when it isn't to be delivered here any more. */
  async #judgementOf(delivery: Delivery): Promise<Judgement | undefined> {
    const { judge, isDraining } = this.#options
    const { sourceId, firstSeenMs, property, body, isUncertain, pending } = delivery
    const waiting = { unit: pending.record.partition, sourceId, firstSeenMs, body, isUncertain }
    let judgement: Judgement | undefined
    try {
      judgement = await judge?.(property === undefined ? waiting : { ...waiting, property })
    } catch (error) {
      // To send it or to drop it could both be wrong: the process ends, and its next owner asks again.
      if (!isDraining() && !delivery.isAbandoned) throw error
    }
    return isDraining() || delivery.isAbandoned ? undefined : judgement
  }

  #carryOut(delivery: Delivery, judgement: Judgement): void {
    const { exits, backfillNeeds, catalog, enqueue } = this.#options
    if (delivery.isDelivered && isOfSame(delivery, judgement)) {
      // What was done late has changed nothing.
      exits.settle(delivery)
      return
    }
    switch (judgement.kind) {
      case 'superseded':
        // What is newer went to those that were connected.
        if (!this.#isConnected(delivery)) backfillNeeds.tellOf(delivery)
        exits.drop(delivery, judgement.kind)
        return
      case 'suppressed':
        exits.drop(delivery, judgement.kind)
        return
      case 'send_current':
        delivery.replaceBy(judgement)
        break
      case 'send':
        break
    }
    enqueue(delivery, catalog().destinations.get(delivery.destinationId))
  }

  #isConnected({ destinationId, sourceId }: Delivery): boolean {
    const connected = this.#options.catalog().destinationsBySource.get(sourceId)
    return connected?.some(({ id }) => id === destinationId) ?? false
  }
}

/** Whether what is to be sent is what the delivery has already. */
function isOfSame({ messageId }: Delivery, judgement: Judgement): boolean {
  return judgement.kind === 'send' || (judgement.kind === 'send_current' && judgement.messageId === messageId)
}
