import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { DeadReason } from '../message/dead-letter-reasons.ts'

/**
 * The treatment of a message whose destination isn't `on`. `park`: the message waits as long as the
 * destination is `paused` or `auto_paused`. `deadLetter`: the message becomes a dead letter, which can be
 * replayed later.
 */
export type StateEffect =
  | { readonly kind: 'park' }
  | { readonly kind: 'deadLetter'; readonly reason: DeadReason; readonly detail: string }

/** What becomes of messages for destinations that Sluice has paused. */
export type WhileAutoPaused = 'wait' | 'dead-letter'

/**
 * Returns the effect of the state of a destination that isn't `on`. `destination` is `undefined` if the
 * catalog has no such destination.
 */
export function stateEffectOf(
  destination: DestinationDefinition | undefined,
  whileAutoPaused: WhileAutoPaused = 'wait',
): StateEffect {
  if (destination === undefined)
    return deadLetter('destination_removed', 'the catalog has no such destination')
  if (destination.state === 'off') return deadLetter('destination_off', 'the destination is off')
  if (destination.state === 'auto_paused' && whileAutoPaused === 'dead-letter')
    return deadLetter('auto_paused', describeAutoPause(destination.id))
  return { kind: 'park' }
}

function deadLetter(reason: DeadReason, detail: string): StateEffect {
  return { kind: 'deadLetter', reason, detail }
}

/**
 * Describes that a delivery became a dead letter because its destination was paused automatically
 * (`auto_paused`), and what the customer can do.
 */
function describeAutoPause(destinationId: string): string {
  return `Sluice has paused the destination, since all its URLs have failed for too long, or are gone. Mend the endpoint; then: sluice destinations resume ${destinationId}; then send it again: sluice replay dead-letters --destination ${destinationId} --reason auto_paused`
}
