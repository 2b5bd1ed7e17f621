// The assignment of units to members. Unit i is partition i of every topic that the group reads. The
// functions here are pure.
//
// The assignment is balanced: any two members differ by at most one unit. It is sticky: a unit moves only if
// the balance requires it. So as few units as possible move when a member joins or leaves.

/**
 * The part of a member's claim on which the assignment depends: the units that the member owns, and the time
 * at which it got them, in epoch milliseconds. The time is 0 while the member owns no unit yet.
 */
export type MemberClaim = { memberId: string; sinceMs: number; units: readonly number[] }

/** Returns the units of each member, ascending. `claims` contains one claim for each member. */
export function assignSticky(unitCount: number, claims: readonly MemberClaim[]): Map<string, number[]> {
  const members = claims.map(({ memberId }) => memberId).sort()
  const kept = keepClaims(unitCount, claims)
  const free = new Set(Array.from({ length: unitCount }, (_, unit) => unit))
  for (const units of kept.values()) for (const unit of units) free.delete(unit)

  const fewest = Math.floor(unitCount / Math.max(1, members.length))
  const extra = unitCount - fewest * members.length
  // If the units can't be divided evenly, the members that keep the most units own one unit more than the
  // others. Among members with equally many units, the member id decides. So every group leader makes the
  // same decision.
  const bySize = [...members].sort((a, b) => sizeOf(kept, b) - sizeOf(kept, a) || compare(a, b))
  const room = new Map(bySize.map((memberId, index) => [memberId, fewest + (index < extra ? 1 : 0)]))

  for (const memberId of members) {
    const units = kept.get(memberId) ?? []
    for (const unit of units.splice(room.get(memberId) ?? 0)) free.add(unit)
  }
  const unowned = [...free].sort((a, b) => a - b)
  for (const memberId of members) {
    const units = kept.get(memberId) ?? []
    while (units.length < (room.get(memberId) ?? 0)) {
      const unit = unowned.shift()
      if (unit === undefined) break
      units.push(unit)
    }
    units.sort((a, b) => a - b)
  }
  return kept
}

/**
 * Gives each claimed unit to one of the members that claim it: the member that got the unit last. An older
 * claim to the unit comes from a member that the group has already replaced.
 */
function keepClaims(unitCount: number, claims: readonly MemberClaim[]): Map<string, number[]> {
  const owners = new Map<number, MemberClaim>()
  for (const claim of claims) {
    for (const unit of claim.units) {
      if (unit < 0 || unit >= unitCount || !Number.isInteger(unit)) continue
      const other = owners.get(unit)
      if (other === undefined || isStronger(claim, other)) owners.set(unit, claim)
    }
  }
  const kept = new Map<string, number[]>(claims.map(({ memberId }) => [memberId, []]))
  for (const [unit, { memberId }] of [...owners].sort(([a], [b]) => a - b)) kept.get(memberId)?.push(unit)
  return kept
}

function isStronger(claim: MemberClaim, other: MemberClaim): boolean {
  if (claim.sinceMs !== other.sinceMs) return claim.sinceMs > other.sinceMs
  return compare(claim.memberId, other.memberId) < 0
}

function sizeOf(kept: ReadonlyMap<string, readonly number[]>, memberId: string): number {
  return kept.get(memberId)?.length ?? 0
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
