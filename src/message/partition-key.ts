import { isAbsent } from './validate.ts'

/**
 * Returns the record key for a validated message: its `userId`, or its `anonymousId` if it has no user id.
 * With this key, all messages of a user are in one partition. An alias may have its user id only in the field
 * `User ID`.
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
