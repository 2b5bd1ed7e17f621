import { AssignerProtocol, type PartitionAssigner } from 'kafkajs'
import { type Claim, encodeClaim, readClaim } from './claim.ts'
import { assignSticky } from './sticky.ts'

/** What this member has now: sent along with each join. */
export type CurrentClaim = () => Claim

/**
 * Assigns in units, sticky and balanced: partition i of every topic goes to the same member, so that one
 * worker owns all that concerns a user. Each member's claim travels in its subscription's user data.
 */
export function createUnitAssigner(current: CurrentClaim): PartitionAssigner {
  return ({ cluster }) => ({
    name: 'sluice-units',
    version: 2,

    async assign({ members, topics }) {
      const partitionsByTopic = new Map(
        topics.map((topic) => [
          topic,
          new Set(cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId)),
        ]),
      )
      const unitCount = Math.max(0, ...[...partitionsByTopic.values()].map((partitions) => partitions.size))
      const assignment = assignSticky(
        unitCount,
        members.map(({ memberId, memberMetadata }) => ({ memberId, ...readClaim(memberMetadata) })),
      )
      return [...assignment].map(([memberId, units]) => ({
        memberId,
        memberAssignment: AssignerProtocol.MemberAssignment.encode({
          version: this.version,
          assignment: Object.fromEntries(
            [...partitionsByTopic].map(([topic, partitions]) => [
              topic,
              units.filter((unit) => partitions.has(unit)),
            ]),
          ),
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
          userData: encodeClaim(current()),
        }),
      }
    },
  })
}
