import { type Answer, problem } from './answer.ts'
import type { Delivered } from './parcel.ts'

/**
 * All that is answered 503. The code tells whose fault it is: `overloaded` is the gateway's own limit
 * (`gateway.bufferBytes`, or what all requests may hold while they are received), `kafka_unavailable` is
 * Kafka's. Each has a `Retry-After`.
 */

/** Too many bytes of requests are being received at once. */
export function tooMuchReceived(): Answer {
  return problem('overloaded', 'Too much is being received. Send it again.', retryAfterS())
}

/** Kafka hasn't acknowledged all messages of a request. */
export function serviceUnavailable(delivered: Exclude<Delivered, 'acknowledged'>): Answer {
  switch (delivered) {
    case 'full':
      return problem('overloaded', 'Too much waits to be written. Send it again.', retryAfterS())
    case 'too_late':
    case 'unavailable':
      return problem(
        'kafka_unavailable',
        'The messages could not be written in time. Send them again.',
        retryAfterS(),
      )
  }
}

const leastRetryS = 1
const mostRetryS = 3

/** For what will soon be over: whole seconds, not the same for all, lest all come back at once. */
function retryAfterS(): number {
  return leastRetryS + Math.floor(Math.random() * (mostRetryS - leastRetryS + 1))
}
