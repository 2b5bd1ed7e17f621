/**
 * The assignment of units to members. A unit is a partition number: partition i of every topic. Pure.
 *
 * Balanced: the numbers of units of any two members differ by one at the most. Sticky: a unit moves only for
 * the balance, so a join or a leave disturbs as few units as possible.
 */

/**
 * A member's claim: the units that it owns, and when it got them, in epoch milliseconds (0: it owns none
 * yet).
 */
export type MemberClaim = { memberId: string; sinceMs: number; units: readonly number[] }

/** Returns the units of each member, ascending. `claims` has an entry for each member. */
export function assignSticky(unitCount: number, claims: readonly MemberClaim[]): Map<string, number[]> {
  const members = claims.map(({ memberId }) => memberId).sort()
  const kept = keepClaims(unitCount, claims)
  const free = new Set(Array.from({ length: unitCount }, (_, unit) => unit))
  for (const units of kept.values()) for (const unit of units) free.delete(unit)

  const fewest = Math.floor(unitCount / Math.max(1, members.length))
  const extra = unitCount - fewest * members.length
  // Members that keep the most units get one more when the units can't be divided evenly. Ties go by name, so
  // every leader decides the same.
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
 * Leaves each unit to the member that got it last, since an older claim comes from a zombie: a member that
 * the group has already replaced.
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
