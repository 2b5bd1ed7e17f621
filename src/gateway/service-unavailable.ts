import { type Answer, problem } from './answer.ts'
import type { Delivered } from './parcel.ts'

/**
 * All answers of the API with status 503 (`/readyz`: `src/roles/readiness.ts`). The code tells the cause.
 * `overloaded`: a limit of the gateway is reached (`gateway.bufferBytes`, or the bytes that all requests may
 * hold while they are received). `kafka_unavailable`: Kafka doesn't accept records in time. Each answer has a
 * `Retry-After`.
 */

/** Answers a request that arrived while too many bytes were being received. */
export function tooMuchReceived(): Answer {
  return problem('overloaded', 'Too much is being received. Send it again.', retryAfterS())
}

/** Answers a request of which Kafka hasn't acknowledged all messages. */
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

/**
 * Returns a `Retry-After` for a short problem, in whole seconds. It is random, so that not all clients send
 * again at the same time.
 */
function retryAfterS(): number {
  return leastRetryS + Math.floor(Math.random() * (mostRetryS - leastRetryS + 1))
}
