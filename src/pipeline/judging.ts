import type { Judgement } from '../message/judgement.ts'
import type { Delivery } from './delivery.ts'
import type { Exits } from './exits.ts'
import type { BackfillNeeds } from './needs-backfill.ts'
import type { PipelineOptions } from './pipeline-ports.ts'

type JudgingOptions = Pick<
  PipelineOptions,
  'catalog' | 'judge' | 'needsJudging' | 'mayBeDeleted' | 'mayBeSuppressed' | 'deletionsOf'
> & {
  readonly backfillNeeds: BackfillNeeds
  readonly exits: Exits
  readonly isDraining: () => boolean
}

/**
 * Decides whether deliveries that waited are still sent, and carries out these decisions (`Judgement`). Holds
 * no state. The rules themselves are elsewhere:
 *
 * - A retry with a property is dropped if a newer value of the property is known and the retry isn't
 *   uncertain (`src/audience/unit/judge-property.ts`).
 * - An event is dropped if its user was deleted (`AudienceUnits.judge` in `src/audience/unit/units.ts`).
 */
export class Judging {
  readonly #options: JudgingOptions

  constructor(options: JudgingOptions) {
    this.#options = options
  }

  /**
   * Returns true if `judge` must be called for a delivery that waited. Returns false for a `delete`, because
   * it is always sent, even if another deletion request followed.
   */
  isNeededBy({ kind, sourceId, property, pending }: Delivery): boolean {
    const { judge, needsJudging } = this.#options
    if (judge === undefined || kind === 'delete') return false
    const hasProperty = property !== undefined
    return needsJudging?.(sourceId, pending.record.partition, hasProperty) ?? hasProperty
  }

  /**
   * Returns true if a delivery has a property of a user who may have been deleted at some time. The result
   * may wrongly be true, but it is never wrongly false.
   */
  mayBeDeleted({ property, pending }: Delivery): boolean {
    if (property === undefined) return false
    return this.#options.mayBeDeleted?.(property, pending.record.partition) ?? false
  }

  /** Notes that by all deletions that are known now, a delivery is to be sent. */
  noteKnown(delivery: Delivery): void {
    delivery.deletionsKnown = this.#deletionsOf(delivery)
  }

  /**
   * Returns true if a user was deleted since it was decided that a delivery is sent, and this may have been
   * its user. A lane with a rate may hold a delivery for long, and so may the bulkhead, but a `delete` must
   * not be followed by what came before it. If it was another user, this is noted, so that each delivery is
   * read once for all deletions so far.
   */
  isNeededAgainBy(delivery: Delivery): boolean {
    if (delivery.deletionsKnown === this.#deletionsOf(delivery)) return false
    if (this.isNeededBy(delivery) && this.#mayBeOfDeleted(delivery)) return true
    this.noteKnown(delivery)
    return false
  }

  /** Returns true like `mayBeDeleted`, and also for an event. */
  #mayBeOfDeleted(delivery: Delivery): boolean {
    const { property, sourceId, body, pending } = delivery
    if (property !== undefined) return this.mayBeDeleted(delivery)
    const unit = pending.record.partition
    return this.#options.mayBeSuppressed?.({ unit, sourceId, body }) ?? true
  }

  #deletionsOf({ pending }: Delivery): number {
    return this.#options.deletionsOf?.(pending.record.partition) ?? 0
  }

  /**
   * Decides whether a delivery is still sent, and ends it if it isn't. Returns `send` if it is to be sent,
   * and `let go` if this worker must not make it any more. A delivery with a property must hold its ordering
   * key. Newer values then wait for the key, so the decision is still right when the delivery is sent.
   */
  async judge(delivery: Delivery): Promise<'send' | 'let go' | 'ended'> {
    this.noteKnown(delivery)
    const judgement = await this.#judgementOf(delivery)
    return judgement === undefined ? 'let go' : this.#carryOut(delivery, judgement)
  }

  /**
   * Asks for the judgement of a delivered message once more, and returns true if it is still right to send
   * this message. If its user was deleted after the first judgement, the `delete` may have arrived before the
   * message.
   */
  async stillHolds(delivery: Delivery): Promise<boolean> {
    const judgement = await this.#judgementOf(delivery)
    return judgement !== undefined && isOfSame(delivery, judgement)
  }

  /**
   * Asks for the judgement of a delivery. Returns `undefined` if this worker must not make the delivery any
   * more.
   */
  async #judgementOf(delivery: Delivery): Promise<Judgement | undefined> {
    const { judge, isDraining } = this.#options
    const { sourceId, firstSeenMs, property, body, isUncertain, pending } = delivery
    const waiting = { unit: pending.record.partition, sourceId, firstSeenMs, body, isUncertain }
    let judgement: Judgement | undefined
    try {
      judgement = await judge?.(property === undefined ? waiting : { ...waiting, property })
    } catch (error) {
      // Without a judgement, it could be wrong to send the delivery, and it could be wrong to drop it. So the
      // process ends, and the next owner asks again.
      if (!isDraining() && !delivery.isAbandoned) throw error
    }
    return isDraining() || delivery.isAbandoned ? undefined : judgement
  }

  #carryOut(delivery: Delivery, judgement: Judgement): 'send' | 'ended' {
    const { exits, backfillNeeds } = this.#options
    if (delivery.isDelivered && isOfSame(delivery, judgement)) {
      // The message was delivered and is still right, so nothing has to be corrected.
      exits.settle(delivery)
      return 'ended'
    }
    switch (judgement.kind) {
      case 'superseded':
        // The newer value was sent only to the destinations that were connected to the space when it came.
        if (!this.#isConnected(delivery)) backfillNeeds.tellOf(delivery)
        exits.drop(delivery, judgement.kind)
        return 'ended'
      case 'suppressed':
        exits.drop(delivery, judgement.kind)
        return 'ended'
      case 'send_current':
        delivery.replaceBy(judgement)
        return 'send'
      case 'send':
        return 'send'
    }
  }

  #isConnected({ destinationId, sourceId }: Delivery): boolean {
    const connected = this.#options.catalog().destinationsBySource.get(sourceId)
    return connected?.some(({ id }) => id === destinationId) ?? false
  }
}

/** Returns true if the message of the judgement is the message that the delivery already has. */
function isOfSame({ messageId }: Delivery, judgement: Judgement): boolean {
  return judgement.kind === 'send' || (judgement.kind === 'send_current' && judgement.messageId === messageId)
}
