import { AssignerProtocol } from 'kafkajs'

/** What a member tells the group at each join. */
export type Claim = {
  /** What it owns, and so keeps where it can. */
  units: readonly number[]
  /** When it was given that, in epoch milliseconds; 0: it owns nothing yet. */
  sinceMs: number
  /**
   * Of what it may have something in flight: what it has begun with, and what it has lost and not finished.
   */
  busy: readonly number[]
  /** The same, of the topics alone that need the state of their unit: with those it may begin much later. */
  busyWithState: readonly number[]
  /** How many units its installation has; absent from versions that look at the topics instead. */
  partitions?: number
}

/** What a member has joined with. */
export type Subscription = { readonly topics: readonly string[]; readonly claim: Claim }

/** Of the subscription's own format: versions that use kafkajs' consumer have the same. */
const version = 2

export function writeSubscription({ topics, claim }: Subscription): Buffer {
  const userData = Buffer.from(JSON.stringify(claim))
  return AssignerProtocol.MemberMetadata.encode({ version, topics: [...topics], userData })
}

const noClaim: Claim = { units: [], sinceMs: 0, busy: [], busyWithState: [] }

/** What can't be read claims nothing, and subscribes to nothing. */
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

/** What a member is given: partitions by topic. */
export type Assignment = ReadonlyMap<string, readonly number[]>

export function writeAssignment(assignment: Assignment): Buffer {
  return AssignerProtocol.MemberAssignment.encode({
    version,
    assignment: Object.fromEntries([...assignment].map(([topic, partitions]) => [topic, [...partitions]])),
    userData: Buffer.alloc(0),
  })
}

/** Empty where there is none. */
export function readAssignment(bytes: Buffer): Assignment {
  const decoded = bytes.length === 0 ? null : AssignerProtocol.MemberAssignment.decode(bytes)
  return new Map(Object.entries(decoded?.assignment ?? {}))
}
