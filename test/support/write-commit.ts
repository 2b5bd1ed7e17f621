import { openCluster } from '../../src/kafka/open-cluster.ts'
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
