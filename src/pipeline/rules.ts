import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { SkipReason } from '../routing/route.ts'
import { describeFilterFault, describeMappingFault } from './dead-letter-advice.ts'
import type { Delivery } from './delivery.ts'
import type { Exits } from './exits.ts'
import type { PipelineOptions } from './pipeline-ports.ts'
import type { RuleTime } from './rule-time.ts'
import { isShaped, judgeAgain, outgoing } from './shaping.ts'

type RulesOptions = Pick<PipelineOptions, 'observer'> & {
  readonly exits: Pick<Exits, 'settle' | 'deadLetter'>
  readonly ruleTime: RuleTime
}

/**
 * What the rules of a destination say of a delivery whose turn has come. `ready`: what it sends is made.
 * `waits`: nothing is said for `ms` milliseconds, because the rules have taken too long. `filtered`: its
 * destination doesn't get it after all. `failed`: it becomes a dead letter.
 */
export type Ruled = { readonly kind: 'ready' } | { readonly kind: 'waits'; readonly ms: number } | Ending

type Ending =
  | { readonly kind: 'filtered'; readonly reason: SkipReason }
  | {
      readonly kind: 'failed'
      readonly reason: 'filter_failed' | 'mapping_failed'
      readonly detail: string
    }

export const ready: Ruled = { kind: 'ready' }

/**
 * The rules of destinations, for deliveries whose turn has come: conditions that weren't asked when the
 * message was routed, and mappings. Holds no state.
 */
export class Rules {
  readonly #options: RulesOptions

  constructor(options: RulesOptions) {
    this.#options = options
  }

  /** Makes what a delivery sends, or says why it sends nothing now. Charges its destination with the time. */
  apply(delivery: Delivery, definition: DestinationDefinition): Ruled {
    if (!delivery.isUnjudged && !isShaped(delivery, definition)) {
      delivery.shape(undefined, '')
      return ready
    }
    const { ruleTime } = this.#options
    const waitMs = ruleTime.waitMs(definition.id)
    if (waitMs > 0) return { kind: 'waits', ms: Math.ceil(waitMs) }
    return ruleTime.measure(definition.id, () => judged(delivery, definition) ?? shaped(delivery, definition))
  }

  /** Ends a delivery that its rules don't let through. It must have no place in its lane any more. */
  end(delivery: Delivery, ending: Ending): void {
    const { observer, exits } = this.#options
    if (ending.kind === 'failed') {
      exits.deadLetter(delivery, ending.reason, ending.detail)
      return
    }
    const { destinationId, sourceId, messageId, kind, body, pending } = delivery
    observer.notRouted(ending.reason)
    observer.filtered?.(ending.reason, { destinationId, sourceId, messageId, kind, body }, pending.record)
    exits.settle(delivery)
  }
}

/**
 * Asks conditions that weren't asked when the message was routed. `undefined`: they let the delivery through.
 */
function judged(delivery: Delivery, definition: DestinationDefinition): Ending | undefined {
  if (!delivery.isUnjudged) return undefined
  const said = judgeAgain(delivery, definition)
  if (said.kind === 'skipped') return { kind: 'filtered', reason: said.reason }
  if (said.kind === 'failed')
    return { kind: 'failed', reason: 'filter_failed', detail: describeFilterFault(said) }
  delivery.isUnjudged = false
  return undefined
}

/** Makes what a delivery sends. */
function shaped(delivery: Delivery, definition: DestinationDefinition): Ruled {
  const decided = outgoing(delivery, definition)
  switch (decided.kind) {
    case 'plain':
      delivery.shape(undefined, '')
      return ready
    case 'shaped':
      delivery.shape(decided.shaped, decided.shaper.text)
      return ready
    case 'none':
      return { kind: 'filtered', reason: 'filtered_by_destination' }
    case 'failed': {
      const { reason, detail } = decided
      const described =
        reason === 'filter_failed'
          ? describeFilterFault({ of: 'mapping', detail })
          : describeMappingFault(detail)
      return { kind: 'failed', reason, detail: described }
    }
  }
}
