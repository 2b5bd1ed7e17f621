import { errorCodes } from '../wire/error-codes.ts'

const memberCodes: ReadonlyMap<string, number> = new Map([
  ['REBALANCE_IN_PROGRESS', errorCodes.REBALANCE_IN_PROGRESS],
  ['ILLEGAL_GENERATION', errorCodes.ILLEGAL_GENERATION],
  ['UNKNOWN_MEMBER_ID', errorCodes.UNKNOWN_MEMBER_ID],
  ['FENCED_INSTANCE_ID', errorCodes.FENCED_INSTANCE_ID],
])

const fatalTypes: ReadonlySet<string> = new Set([
  'FENCED_INSTANCE_ID',
  'INVALID_GROUP_ID',
  'INVALID_SESSION_TIMEOUT',
  'GROUP_AUTHORIZATION_FAILED',
])

/**
 * Returns the error code with which a coordinator rejects a member or its generation. Returns `undefined` for
 * all other errors.
 */
export function memberCodeOf(error: unknown): number | undefined {
  return memberCodes.get(typeOf(error))
}

/** Returns true if the group will never accept a member of this process, however often the member tries. */
export function isFatalToMember(error: unknown): boolean {
  return fatalTypes.has(typeOf(error))
}

/** Returns kafkajs' name of a protocol error. Returns an empty string for all other errors. */
export function typeOf(error: unknown): string {
  return error instanceof Error && 'type' in error && typeof error.type === 'string' ? error.type : ''
}
