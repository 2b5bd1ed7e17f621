import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { DeadReason } from '../message/dead-letter-reasons.ts'
import { describeAutoPause } from './dead-letter.ts'

/**
 * What happens to a message whose destination isn't `on`. `park`: the message waits on the retry ladder for
 * as long as the catalog says `state: paused`. `deadLetter`: the message is not delivered, and its dead
 * letter can be replayed.
 */
export type StateEffect =
  | { readonly kind: 'park' }
  | { readonly kind: 'deadLetter'; readonly reason: DeadReason; readonly detail: string }

/**
 * Returns the effect of the state of a destination that isn't `on`. `undefined` is a destination that the
 * catalog doesn't have.
 */
export function stateEffectOf(destination: DestinationDefinition | undefined): StateEffect {
  if (destination === undefined)
    return deadLetter('destination_removed', 'the catalog has no such destination')
  if (destination.state === 'off') return deadLetter('destination_off', 'the destination is off')
  if (destination.state === 'auto_paused') return deadLetter('auto_paused', describeAutoPause(destination.id))
  return { kind: 'park' }
}

function deadLetter(reason: DeadReason, detail: string): StateEffect {
  return { kind: 'deadLetter', reason, detail }
}
