import { isAbsent } from './validate.ts'

/**
 * Returns the key of the record that carries a validated message: `userId`, else `anonymousId`. This key puts
 * all messages of a user into one partition. An alias may have its user only in the receivers' spelling
 * (`User ID`).
 */
export function partitionKey(message: {
  type?: unknown
  userId?: unknown
  anonymousId?: unknown
  'User ID'?: unknown
}): string | undefined {
  return (
    id(message.userId) ??
    (message.type === 'alias' ? id(message['User ID']) : undefined) ??
    id(message.anonymousId)
  )
}

function id(value: unknown): string | undefined {
  return typeof value === 'string' && !isAbsent(value) ? value : undefined
}
