import type { Coordinator } from './coordinator.ts'
import { errorCodes, protocolError } from './error-codes.ts'
import { type Identity, leaveGroup } from './group-messages.ts'

/**
 * The answers of the coordinator after which the member is out of the group: it has left, or another member
 * has its instance id.
 */
const hasLeft: ReadonlySet<number> = new Set([
  errorCodes.NONE,
  errorCodes.UNKNOWN_MEMBER_ID,
  errorCodes.FENCED_INSTANCE_ID,
])

/**
 * Leaves the group. Never rejects: if leaving fails, the group removes the member when the member's session
 * is over.
 */
export async function leave(
  coordinator: Coordinator,
  groupId: string,
  {
    member,
    log,
  }: {
    member: Pick<Identity, 'memberId' | 'instanceId'>
    log: { warn(fields: object, message: string): void }
  },
): Promise<void> {
  try {
    const { errorCode } = await coordinator.ask(leaveGroup(groupId, member))
    if (!hasLeft.has(errorCode)) throw protocolError(errorCode)
  } catch (error) {
    log.warn(
      { err: error },
      'leaving the group failed: the group removes this member when its session is over',
    )
  }
}
