import { AssignerProtocol, type PartitionAssigner } from 'kafkajs'

/**
 * Assigns in units: partition i of every topic goes to the same member, so that one worker owns all that
 * concerns a user. Unit i is the (i mod members)-th member's, by sorted member id.
 */
export const assignUnits: PartitionAssigner = ({ cluster }) => ({
  name: 'sluice-units',
  version: 1,

  async assign({ members, topics }) {
    const memberIds = members.map(({ memberId }) => memberId).sort()
    const assignments = new Map(memberIds.map((memberId) => [memberId, new Map<string, number[]>()]))
    for (const topic of topics) {
      for (const { partitionId } of cluster.findTopicPartitionMetadata(topic)) {
        const owner = assignments.get(memberIds[partitionId % memberIds.length] ?? '')
        if (owner === undefined) continue
        const partitions = owner.get(topic)
        if (partitions === undefined) owner.set(topic, [partitionId])
        else partitions.push(partitionId)
      }
    }
    return [...assignments].map(([memberId, partitionsByTopic]) => ({
      memberId,
      memberAssignment: AssignerProtocol.MemberAssignment.encode({
        version: this.version,
        assignment: Object.fromEntries(partitionsByTopic),
        userData: Buffer.alloc(0),
      }),
    }))
  },

  protocol({ topics }) {
    return {
      name: this.name,
      metadata: AssignerProtocol.MemberMetadata.encode({
        version: this.version,
        topics,
        userData: Buffer.alloc(0),
      }),
    }
  },
})
