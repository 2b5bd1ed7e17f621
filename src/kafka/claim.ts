import { AssignerProtocol } from 'kafkajs'

/** What a member tells the group at each join. */
export type Claim = {
  /** What it owns, and so keeps where it can. */
  units: readonly number[]
  /** When it was given that, in epoch milliseconds; 0: it owns nothing yet. */
  sinceMs: number
  /** Of what it may have something in flight: what it has begun with, and what it has lost and not finished. */
  busy: readonly number[]
  /** The same, of the topics alone that need the state of their unit: with those it may begin much later. */
  busyWithState: readonly number[]
}

export function encodeClaim(claim: Claim): Buffer {
  return Buffer.from(JSON.stringify(claim))
}

const noClaim: Claim = { units: [], sinceMs: 0, busy: [], busyWithState: [] }

/** Reads the claim in a member's subscription. What can't be read claims nothing: the member is given its share all the same. */
export function readClaim(memberMetadata: Buffer): Claim {
  try {
    const userData = AssignerProtocol.MemberMetadata.decode(memberMetadata)?.userData
    const claim: unknown = JSON.parse(String(userData))
    if (!isClaim(claim)) return noClaim
    return 'busyWithState' in claim && isUnits(claim.busyWithState)
      ? { ...claim, busyWithState: claim.busyWithState }
      : { ...claim, busyWithState: claim.busy }
  } catch {
    return noClaim
  }
}

function isClaim(value: unknown): value is Omit<Claim, 'busyWithState'> {
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
