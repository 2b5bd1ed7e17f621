import { readCommits } from '../../src/kafka/other-groups/group-state.ts'
import { openCluster } from '../../src/kafka/cluster/open-cluster.ts'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { otherProgram } from './kafka.ts'

/** A commit that a program outside Sluice writes for a group without members. */
export type ForeignCommit = {
  groupId: string
  topic: string
  partition: number
  offset: number
  metadata: string | null
}

/** Writes a commit with the metadata that is given, as MirrorMaker and scripts do. */
export async function writeCommit({ groupId, topic, ...commit }: ForeignCommit): Promise<void> {
  // Waits until the group has a coordinator, which takes a moment if the group is new.
  await withAdmin(otherProgram(), (admin) => readCommits(admin, groupId, [topic]))
  const opened = openCluster(otherProgram())
  try {
    await opened.cluster.connect()
    await opened.cluster.addTargetTopic(topic)
    const coordinator = await opened.cluster.findGroupCoordinator({ groupId })
    const topics = [{ topic, partitions: [{ ...commit, offset: String(commit.offset) }] }]
    await coordinator.offsetCommit({ groupId, memberId: '', groupGenerationId: -1, topics })
  } finally {
    await opened.close()
  }
}
