import kafkajs from 'kafkajs'

/**
 * Returns true if the broker answered with one of `types` (Kafka's names of its error codes), even if the
 * client has wrapped the error.
 */
export function isProtocolError(error: unknown, types: ReadonlySet<string>): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (
      cause instanceof kafkajs.KafkaJSError &&
      'type' in cause &&
      typeof cause.type === 'string' &&
      types.has(cause.type)
    ) {
      return true
    }
  }
  return false
}

/**
 * Returns true if the error came from kafkajs. Such an error reports an answer of a broker, a lost connection
 * or a timeout.
 */
export function isKafkaError(error: unknown): error is Error {
  return error instanceof kafkajs.KafkaJSError
}

export function isUnknownMember(error: unknown): boolean {
  return isProtocolError(error, unknownMember)
}

const unknownMember: ReadonlySet<string> = new Set(['UNKNOWN_MEMBER_ID'])

/** Reports that a log isn't the one that was read before, or has lost records that were read. */
export class OtherLogError extends Error {
  override readonly name = 'OtherLogError'
}

/** Reports that Kafka didn't answer in time, or delivered no records in time. */
export class SilentKafkaError extends Error {
  override readonly name = 'SilentKafkaError'
}

/** The most reasons that one message lists. */
const namedReasons = 5

/**
 * Returns a text with the first few reasons, and with the number of the remaining reasons. Equal reasons are
 * listed once.
 */
export function describeReasons(reasons: readonly string[]): string {
  const each = [...new Set(reasons)]
  const some = each.slice(0, namedReasons).join('; ')
  return each.length > namedReasons ? `${some}; and ${each.length - namedReasons} more` : some
}

/** Returns the message of an error, or the text of anything else that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
