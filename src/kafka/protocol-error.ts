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

/** Returns true if the coordinator does not know the member, or no longer knows it. */
export function isUnknownMember(error: unknown): boolean {
  return isProtocolError(error, unknownMember)
}

const unknownMember: ReadonlySet<string> = new Set(['UNKNOWN_MEMBER_ID'])
