import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { DeadReason } from '../message/dead-letter-reasons.ts'
import { describeAutoPause } from './dead-letter.ts'

/**
 * The treatment of a message whose destination isn't `on`. `park`: the message waits on the retry ladder as
 * long as the catalog says `state: paused`. `deadLetter`: the message becomes a dead letter, which can be
 * replayed later.
 */
export type StateEffect =
  | { readonly kind: 'park' }
  | { readonly kind: 'deadLetter'; readonly reason: DeadReason; readonly detail: string }

/**
 * Returns the effect of the state of a destination that isn't `on`. `destination` is `undefined` if the
 * catalog has no such destination.
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
