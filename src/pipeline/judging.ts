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
  /** Gives up a delivery that this worker must not make any more. */
  readonly letGo: (delivery: Delivery) => void
}

/**
 * Judges deliveries that waited, and carries the results out. A retry is dropped if a newer value of its
 * property has superseded it, unless the retry is uncertain (`src/audience/judge-property.ts`). A waiting
 * event is dropped if its user was deleted (`AudienceUnits.judge` in `src/audience/units.ts`). Holds no state
 * of its own.
 */
export class Judging {
  readonly #options: JudgingOptions

  constructor(options: JudgingOptions) {
    this.#options = options
  }

  /**
   * Returns true if a delivery that waited must be judged. A `delete` never needs a judgement, because
   * another deletion request doesn't make it obsolete.
   */
  isNeededBy({ kind, sourceId, property, pending }: Delivery): boolean {
    const { judge, needsJudging } = this.#options
    if (judge === undefined || kind === 'delete') return false
    const hasProperty = property !== undefined
    return needsJudging?.(sourceId, pending.record.partition, hasProperty) ?? hasProperty
  }

  /**
   * Returns true if the user of a property may have been deleted since the delivery was judged. The answer
   * may wrongly be true, but never wrongly false.
   */
  mayBeDeleted({ property, pending }: Delivery): boolean {
    if (property === undefined) return false
    return this.#options.mayBeDeleted?.(property, pending.record.partition) ?? false
  }

  /**
   * Judges a waiting delivery, and carries the result out. During the judgement, a delivery with a property
   * holds its ordering key. So a newer value waits, and the judgement is still right when the delivery is
   * sent.
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
   * Judges a delivered message once more, and returns true if the message is still the right one. If its user
   * was deleted after the first judgement, the `delete` may have arrived before the message.
   */
  async stillHolds(delivery: Delivery): Promise<boolean> {
    const judgement = await this.#judgementOf(delivery)
    return judgement !== undefined && isOfSame(delivery, judgement)
  }

  /** Judges a delivery. Returns `undefined` if this worker must not make the delivery any more. */
  async #judgementOf(delivery: Delivery): Promise<Judgement | undefined> {
    const { judge, isDraining } = this.#options
    const { sourceId, firstSeenMs, property, body, isUncertain, pending } = delivery
    const waiting = { unit: pending.record.partition, sourceId, firstSeenMs, body, isUncertain }
    let judgement: Judgement | undefined
    try {
      judgement = await judge?.(property === undefined ? waiting : { ...waiting, property })
    } catch (error) {
      // Both sending and dropping it could be wrong. So the process ends, and the next owner asks again.
      if (!isDraining() && !delivery.isAbandoned) throw error
    }
    return isDraining() || delivery.isAbandoned ? undefined : judgement
  }

  #carryOut(delivery: Delivery, judgement: Judgement): void {
    const { exits, backfillNeeds, catalog, enqueue } = this.#options
    if (delivery.isDelivered && isOfSame(delivery, judgement)) {
      // No late request has changed the value.
      exits.settle(delivery)
      return
    }
    switch (judgement.kind) {
      case 'superseded':
        // The newer value went only to the destinations that were connected at its time.
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

/** Returns true if the message to send is the one that the delivery already has. */
function isOfSame({ messageId }: Delivery, judgement: Judgement): boolean {
  return judgement.kind === 'send' || (judgement.kind === 'send_current' && judgement.messageId === messageId)
}
