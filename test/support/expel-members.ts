import { openCluster } from '../../src/kafka/open-cluster.ts'
import { withAdmin } from '../../src/kafka/with-admin.ts'
import { otherProgram } from './kafka.ts'

/** As in kafkajs 2.2.4, which declares it in part. */
type Coordinator = { leaveGroup(member: { groupId: string; memberId: string }): Promise<unknown> }

/** Takes all members out of a group, without a word to them, as if their sessions were over. */
export async function expelMembers(groupId: string): Promise<void> {
  const kafka = otherProgram()
  const { groups } = await withAdmin(kafka, (admin) => admin.describeGroups([groupId]))
  const opened = openCluster(kafka)
  try {
    await opened.cluster.connect()
    await opened.cluster.addTargetTopic('__consumer_offsets')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares a part of its brokers only
    const coordinator = (await opened.cluster.findGroupCoordinator({ groupId })) as unknown as Coordinator
    for (const { memberId } of groups.flatMap(({ members }) => members))
      // One that has just joined again under another name is left alone.
      await coordinator.leaveGroup({ groupId, memberId }).catch(() => undefined)
  } finally {
    await opened.close()
  }
}
