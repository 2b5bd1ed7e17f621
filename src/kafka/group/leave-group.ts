import type { Coordinator } from '../cluster/coordinator.ts'
import { errorCodes, protocolError } from '../wire/error-codes.ts'
import { type Identity, leaveGroup } from '../wire/group-messages.ts'

/**
 * The error codes of the coordinator which mean that the member isn't in the group any more: it has left, or
 * another member has its instance id.
 */
const hasLeft: ReadonlySet<number> = new Set([
  errorCodes.NONE,
  errorCodes.UNKNOWN_MEMBER_ID,
  errorCodes.FENCED_INSTANCE_ID,
])

/**
 * Leaves the group. Never rejects. If the member can't leave, the group removes it when its session timeout
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
