import { AssignerProtocol } from 'kafkajs'

/** The data that a member sends to the group with each join. */
export type Claim = {
  /** The units that the member owns. If possible, the next assignment leaves these units with the member. */
  units: readonly number[]
  /**
   * The time when the member was given these units, in epoch milliseconds. 0 while the member owns no unit
   * yet.
   */
  sinceMs: number
  /**
   * Units for which the member may have requests in flight. These are the units that the member has started,
   * and the units that it has lost and hasn't finished yet.
   */
  busy: readonly number[]
  /**
   * The units of `busy` for which requests of topics with `needsState` may be in flight. They are listed
   * separately, because a member may start these topics much later than the other topics of a unit.
   */
  busyWithState: readonly number[]
  /**
   * The number of units of the member's installation. Claims of earlier Sluice versions don't have this
   * number. For such a claim, the leader of the group assumes its own number of units.
   */
  partitions?: number
}

/** The topics and the claim with which a member joins. */
export type Subscription = { readonly topics: readonly string[]; readonly claim: Claim }

/**
 * The version number at the start of a subscription. Sluice versions that use kafkajs' consumer write the
 * same number.
 */
const version = 2

export function writeSubscription({ topics, claim }: Subscription): Buffer {
  const userData = Buffer.from(JSON.stringify(claim))
  return AssignerProtocol.MemberMetadata.encode({ version, topics: [...topics], userData })
}

const noClaim: Claim = { units: [], sinceMs: 0, busy: [], busyWithState: [] }

/**
 * Reads a subscription. If the bytes can't be read, returns a subscription that has no topics, and whose
 * claim has no units.
 */
export function readSubscription(metadata: Buffer): Subscription {
  try {
    const { topics = [], userData } = AssignerProtocol.MemberMetadata.decode(metadata) ?? {}
    return { topics, claim: claimOf(String(userData)) }
  } catch {
    return { topics: [], claim: noClaim }
  }
}

function claimOf(text: string): Claim {
  try {
    const claim: unknown = JSON.parse(text)
    if (!isClaim(claim)) return noClaim
    const { units, sinceMs, busy } = claim
    return {
      units,
      sinceMs,
      busy,
      busyWithState: 'busyWithState' in claim && isUnits(claim.busyWithState) ? claim.busyWithState : busy,
      ...('partitions' in claim && isCount(claim.partitions) && { partitions: claim.partitions }),
    }
  } catch {
    return noClaim
  }
}

function isClaim(value: unknown): value is Pick<Claim, 'units' | 'sinceMs' | 'busy'> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'sinceMs' in value &&
    typeof value.sinceMs === 'number' &&
    'units' in value &&
    isUnits(value.units) &&
    'busy' in value &&
    isUnits(value.busy)
  )
}

function isUnits(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((unit) => typeof unit === 'number')
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) > 0
}

/** The partitions of one member, by topic. */
export type Assignment = ReadonlyMap<string, readonly number[]>

export function writeAssignment(assignment: Assignment): Buffer {
  return AssignerProtocol.MemberAssignment.encode({
    version,
    assignment: Object.fromEntries([...assignment].map(([topic, partitions]) => [topic, [...partitions]])),
    userData: Buffer.alloc(0),
  })
}

/** Reads an assignment. Returns an empty assignment if there are no bytes. */
export function readAssignment(bytes: Buffer): Assignment {
  const decoded = bytes.length === 0 ? null : AssignerProtocol.MemberAssignment.decode(bytes)
  return new Map(Object.entries(decoded?.assignment ?? {}))
}
