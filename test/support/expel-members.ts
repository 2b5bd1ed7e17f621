import { openCluster } from '../../src/kafka/cluster/open-cluster.ts'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { otherProgram } from './kafka.ts'

/** The coordinator's method that is used here, as in kafkajs 2.2.4. The types of kafkajs don't declare it. */
type Coordinator = { leaveGroup(member: { groupId: string; memberId: string }): Promise<unknown> }

/**
 * Removes all members from a group, or those with a client id, as if their sessions had ended. Doesn't tell the
 * members.
 */
export async function expelMembers(groupId: string, of: { clientId?: string } = {}): Promise<void> {
  const kafka = otherProgram()
  const { groups } = await withAdmin(kafka, (admin) => admin.describeGroups([groupId]))
  const opened = openCluster(kafka)
  try {
    await opened.cluster.connect()
    await opened.cluster.addTargetTopic('__consumer_offsets')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares only a part of it
    const coordinator = (await opened.cluster.findGroupCoordinator({ groupId })) as unknown as Coordinator
    for (const { memberId, clientId } of groups.flatMap(({ members }) => members)) {
      if (of.clientId !== undefined && clientId !== of.clientId) continue
      // A member that has joined again by now has another id. Its removal fails, and it stays in the group.
      await coordinator.leaveGroup({ groupId, memberId }).catch(() => undefined)
    }
  } finally {
    await opened.close()
  }
}
