import type { DestinationDefinition, Endpoint } from '../delivery/endpoint.ts'
import { describeOutcome, isOwnFault } from '../delivery/outcomes/outcome.ts'
import type { BufferAccount } from './buffer-account.ts'
import type { AttemptResults, Omitted } from './attempt.ts'
import { type Decision, decide, type HookResult, idsOf } from './decision.ts'
import type { Delivery } from './delivery.ts'
import { hasOtherHooks, noteHookContents } from './edited-hooks.ts'
import type { Judging } from './judging.ts'
import type { Parking } from './parking.ts'
import type { PipelineOptions } from './pipeline-ports.ts'
import { isUncertain } from '../delivery/outcomes/verdict.ts'

type ConclusionOptions = Pick<PipelineOptions, 'catalog' | 'ladder' | 'observer' | 'answeredGone' | 'now'> & {
  readonly account: BufferAccount
  readonly judging: Judging
  readonly parking: Parking
  /**
   * Handles an attempt that has to be repeated, for example because nothing was sent in it. The attempt isn't
   * counted, and the delivery waits. If `isForAll` is true, the other deliveries of its lane wait too.
   */
  readonly takeBack: (delivery: Delivery, isForAll: boolean) => void
}

/** Decides what happens to a delivery after an attempt, and carries out the decision. Holds no state. */
export class Conclusion {
  readonly #options: ConclusionOptions

  constructor(options: ConclusionOptions) {
    this.#options = options
  }

  /**
   * Decides what happens to a delivery after an attempt with at least one result, and carries out the
   * decision.
   */
  draw(delivery: Delivery, endpoint: Endpoint, attempted: AttemptResults): void {
    const { results, omitted, isCutShort, startedMs } = attempted
    const { ladder, now, judging, parking, takeBack } = this.#options
    const last = results.at(-1)
    const isInDoubt = delivery.property !== undefined && results.some(isUncertainResult)
    if (isInDoubt) delivery.becomeUncertain()
    const isDelivered = results.length === 1 && last?.verdict.kind === 'delivered'
    if (isDelivered && !isInDoubt && !judging.mayBeDeleted(delivery)) {
      // Nearly all attempts end here.
      noteUnsent(delivery, results, omitted)
      this.reportOmitted(delivery, omitted)
      parking.follow(delivery, delivered, 'failed')
      return
    }
    if (last !== undefined) delivery.lastOutcome = describeOutcome(last.outcome)
    if (last !== undefined && results.every(({ outcome }) => isOwnFault(outcome))) {
      // No hook can be reached if no file can be opened, or if the proxy is down.
      takeBack(delivery, last.outcome.kind !== 'proxy' || last.outcome.isDown)
      return
    }
    noteUnsent(delivery, results, omitted)
    noteHookContents(delivery, endpoint.definition)
    const hookIds = idsOf(endpoint.hooks)
    const goneHooks = results.flatMap((result) => (this.noteGone(endpoint, result) ? [result.hookId] : []))
    const decision = decide({
      ladder,
      progress: delivery,
      hookIds,
      results,
      goneHooks,
      startedMs,
      nowMs: now(),
    })
    if (decision.kind === 'dead') {
      if (decision.reason === 'failed_for_good' && goneHooks.length > 0 && this.#isAutoPaused(delivery)) {
        delivery.progress(decision.next)
        parking.park(delivery, 'overflow')
        return
      }
      const edited = this.#editedSince(delivery, endpoint)
      if (isCutShort || edited !== undefined) {
        delivery.progress(decision.next)
        // The last try is made again, with the present catalog.
        if (isCutShort || decision.reason === 'expired') takeBack(delivery, true)
        else if (edited !== undefined) parking.waitForPresentHooks(delivery, edited)
        return
      }
    }
    if (decision.kind !== 'delivered') {
      parking.follow(delivery, decision, 'failed', last?.outcome)
      return
    }
    this.reportOmitted(delivery, omitted)
    if (isInDoubt) this.#outlast(delivery)
    else if (judging.mayBeDeleted(delivery)) void this.#confirm(delivery)
    else parking.follow(delivery, decision, 'failed')
  }

  /**
   * Notes that a hook has answered 410. Returns true if it counts as failed for every message from now on.
   */
  noteGone({ definition }: Endpoint, { hookId, outcome }: HookResult): boolean {
    if (outcome.kind !== 'answer' || outcome.status !== gone) return false
    return this.#options.answeredGone?.(definition, hookId, describeOutcome(outcome)) ?? false
  }

  #isAutoPaused({ destinationId }: Delivery): boolean {
    return this.#options.catalog().destinations.get(destinationId)?.state === 'auto_paused'
  }

  /**
   * If the catalog has been edited since an attempt began, and the destination has a hook now that the
   * attempt could not ask, returns the present definition of the destination.
   */
  #editedSince({ destinationId }: Delivery, { definition }: Endpoint): DestinationDefinition | undefined {
    const present = this.#options.catalog().destinations.get(destinationId)
    return present !== undefined && hasOtherHooks(present, definition) ? present : undefined
  }

  /**
   * Reports the hooks that never get the message. Doesn't report hooks to which an earlier attempt sent it.
   */
  reportOmitted(delivery: Delivery, omitted: readonly Omitted[]): void {
    for (const { hookId, why } of omitted) {
      if (delivery.attempts > 1 && !delivery.unsentHooks.includes(hookId)) continue
      this.#options.observer.omitted(delivery, hookId, why)
    }
  }

  /**
   * Settles a delivered message of a user who may have been deleted. If the user was deleted after the
   * decision to send the message, the `delete` may have arrived before the message. In that case, the
   * delivery isn't settled, and goes to the ladder.
   */
  async #confirm(delivery: Delivery): Promise<void> {
    const { account, judging, parking } = this.#options
    account.begin()
    delivery.becomeUncertain()
    if (await judging.stillHolds(delivery)) parking.follow(delivery, delivered, 'failed')
    else this.#outlast(delivery)
    account.end()
  }

  /**
   * Writes a delivered message to the ladder, because a request of the same attempt may still take effect
   * late, and overwrite a newer value at the receiver. After the wait of one rung, Sluice decides again what
   * to send.
   */
  #outlast(delivery: Delivery): void {
    this.#options.observer.delivered(delivery)
    delivery.outlast()
    this.#options.parking.park(delivery, 'uncertain')
  }
}

/**
 * Updates `unsentHooks`, the hooks to which no attempt has sent a request so far. A request also counts as
 * not sent if the proxy failed or no file could be opened.
 */
function noteUnsent(delivery: Delivery, results: readonly HookResult[], omitted: readonly Omitted[]): void {
  // Nearly all deliveries end here.
  if (delivery.attempts <= 1 && omitted.length === 0) return
  const isSent = (id: string): boolean =>
    results.some(({ hookId, outcome }) => hookId === id && !isOwnFault(outcome))
  if (delivery.attempts > 1) {
    if (delivery.unsentHooks.length > 0)
      delivery.unsentHooks = delivery.unsentHooks.filter((id) => !isSent(id))
  } else if (omitted.length > 0) delivery.unsentHooks = omitted.map(({ hookId }) => hookId)
}

function isUncertainResult({ outcome, mayHaveArrived }: HookResult): boolean {
  return isUncertain(outcome, mayHaveArrived)
}

/** The status by which a URL says that it will never work again. */
const gone = 410

const delivered: Decision = { kind: 'delivered' }
