import { type Answer, problem } from './answer.ts'
import type { Delivered } from '../outbox/parcel.ts'

// All answers of the API with status 503. (The 503 of `/readyz` is in `src/roles/start/readiness.ts`.) The
// code of each answer names the cause. `overloaded`: a limit is reached, either `gateway.bufferBytes`, or the
// limit on the bytes that are held while bodies are received, or a quota of the Kafka cluster.
// `kafka_unavailable`: Kafka doesn't accept records in time. Each answer has a `Retry-After`.

/** Returns the answer to a request that arrived while too many bytes were being received. */
export function tooMuchReceived(): Answer {
  return problem('overloaded', 'Too much is being received. Send it again.', retryAfterS())
}

/**
 * Returns the answer to a request of which Kafka hasn't acknowledged all messages. `throttleMs` is the time
 * for which brokers accept nothing because a quota is used up, in milliseconds.
 */
export function serviceUnavailable(
  delivered: Exclude<Delivered, 'acknowledged'>,
  throttleMs: number,
): Answer {
  switch (delivered) {
    case 'throttled':
      return problem(
        'overloaded',
        'Kafka takes no more for now, because a quota is used up. Send it again later.',
        Math.ceil(throttleMs / 1_000) + retryAfterS() - leastRetryS,
      )
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
 * Returns a value of `Retry-After` for a short problem, in whole seconds. The value is random, so that not
 * all clients send again at the same time.
 */
function retryAfterS(): number {
  return leastRetryS + Math.floor(Math.random() * (mostRetryS - leastRetryS + 1))
}
