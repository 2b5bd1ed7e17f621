import type { Endpoint } from '../delivery/endpoint.ts'
import { describeOutcome } from '../delivery/outcome.ts'
import { isUncertain } from '../delivery/uncertain.ts'
import type { Account } from './account.ts'
import type { AttemptResults, Omitted } from './attempt.ts'
import { type Decision, decide, type HookResult, idsOf } from './decision.ts'
import type { Delivery } from './delivery.ts'
import type { Judging } from './judging.ts'
import type { Parking } from './parking.ts'
import type { PipelineOptions } from './pipeline-ports.ts'

type ConclusionOptions = Pick<PipelineOptions, 'ladder' | 'observer' | 'now'> & {
  readonly account: Account
  readonly judging: Judging
  readonly parking: Parking
  /** Nothing was sent, since our proxy failed: that was no attempt. */
  readonly takeBack: (delivery: Delivery, isProxyDown: boolean) => void
}

/** Draws the conclusion from an attempt that was made. Holds no state of its own. */
export class Conclusion {
  readonly #options: ConclusionOptions

  constructor(options: ConclusionOptions) {
    this.#options = options
  }

  /** Draws it from an attempt that has at least one result. */
  draw(delivery: Delivery, endpoint: Endpoint, { results, omitted, startedMs }: AttemptResults): void {
    const { ladder, now, judging, parking, takeBack } = this.#options
    const last = results.at(-1)
    if (last !== undefined) delivery.lastOutcome = describeOutcome(last.outcome)
    const isInDoubt = delivery.property !== undefined && results.some(isUncertainResult)
    if (isInDoubt) delivery.becomeUncertain()
    if (last?.outcome.kind === 'proxy' && results.every(({ outcome }) => outcome.kind === 'proxy')) {
      takeBack(delivery, last.outcome.isDown)
      return
    }
    noteUnsent(delivery, results, omitted)
    const hookIds = idsOf(endpoint.hooks)
    const decision = decide({ ladder, carried: delivery, hookIds, results, startedMs, nowMs: now() })
    if (decision.kind !== 'delivered') {
      parking.follow(delivery, decision, 'failed', last?.outcome)
      return
    }
    this.reportOmitted(delivery, omitted)
    if (isInDoubt) this.#outlast(delivery)
    else if (judging.mayBeDeleted(delivery)) void this.#confirm(delivery)
    else parking.follow(delivery, decision, 'failed')
  }

  /** Reports hooks that never get the message: no earlier attempt sent it to them either. */
  reportOmitted(delivery: Delivery, omitted: readonly Omitted[]): void {
    for (const { hookId, why } of omitted) {
      if (delivery.attempts > 1 && !delivery.unsentHooks.includes(hookId)) continue
      this.#options.observer.omitted(delivery, hookId, why)
    }
  }

  /**
   * It is delivered. Where its user was deleted after it was judged, the `delete` may have come before it.
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
   * It is delivered, but a request of the same attempt may still be acted on, after a newer value even: a
   * rung later it is judged once more.
   */
  #outlast(delivery: Delivery): void {
    this.#options.observer.delivered(delivery)
    delivery.outlast()
    this.#options.parking.park(delivery, 'uncertain')
  }
}

/** Notes the hooks that no attempt has sent a request so far. A failed proxy sent none. */
function noteUnsent(delivery: Delivery, results: readonly HookResult[], omitted: readonly Omitted[]): void {
  const isSent = (id: string): boolean =>
    results.some(({ hookId, outcome }) => hookId === id && outcome.kind !== 'proxy')
  if (delivery.attempts > 1) {
    if (delivery.unsentHooks.length > 0)
      delivery.unsentHooks = delivery.unsentHooks.filter((id) => !isSent(id))
  } else if (omitted.length > 0) delivery.unsentHooks = omitted.map(({ hookId }) => hookId)
}

function isUncertainResult({ outcome, mayHaveArrived }: HookResult): boolean {
  return isUncertain(outcome, mayHaveArrived)
}

const delivered: Decision = { kind: 'delivered' }
