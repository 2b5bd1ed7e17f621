import kafkajs from 'kafkajs'

/**
 * Whether the broker answered with one of `types` (Kafka's names of its error codes), however the client has
 * wrapped it.
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

/** The coordinator knows no such member (any more). */
export function isUnknownMember(error: unknown): boolean {
  return isProtocolError(error, unknownMember)
}

const unknownMember: ReadonlySet<string> = new Set(['UNKNOWN_MEMBER_ID'])
