import { AssignerProtocol, type PartitionAssigner } from 'kafkajs'
import { assignSticky, type Claim } from './sticky.ts'

/** What this member owns now: sent along with each join. */
export type CurrentUnits = () => Omit<Claim, 'memberId'>

/**
 * Assigns in units, sticky and balanced: partition i of every topic goes to the same member, so that one
 * worker owns all that concerns a user. Each member's claim travels in its subscription's user data.
 */
export function createUnitAssigner(current: CurrentUnits): PartitionAssigner {
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
          userData: Buffer.from(JSON.stringify(current())),
        }),
      }
    },
  })
}

const noClaim: Omit<Claim, 'memberId'> = { sinceMs: 0, units: [] }

/** What can't be read claims nothing: the member is given its share all the same. */
function readClaim(memberMetadata: Buffer): Omit<Claim, 'memberId'> {
  try {
    const userData = AssignerProtocol.MemberMetadata.decode(memberMetadata)?.userData
    const claim: unknown = JSON.parse(String(userData))
    return isClaim(claim) ? claim : noClaim
  } catch {
    return noClaim
  }
}

function isClaim(value: unknown): value is Omit<Claim, 'memberId'> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'sinceMs' in value &&
    typeof value.sinceMs === 'number' &&
    'units' in value &&
    Array.isArray(value.units) &&
    value.units.every((unit) => typeof unit === 'number')
  )
}
