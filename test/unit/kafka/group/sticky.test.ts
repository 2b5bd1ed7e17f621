import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { assignSticky, type MemberClaim } from '../../../../src/kafka/group/sticky.ts'

const fresh = (memberId: string): MemberClaim => ({ memberId, sinceMs: 0, units: [] })

/** Returns the claims that members make after an assignment. */
function claimsOf(assignment: Map<string, number[]>, sinceMs: number): MemberClaim[] {
  return [...assignment].map(([memberId, units]) => ({ memberId, sinceMs, units }))
}

function ownersOf(assignment: Map<string, number[]>): Map<number, string> {
  return new Map(
    [...assignment].flatMap(([memberId, units]) => units.map((unit) => [unit, memberId] as const)),
  )
}

describe('sticky assignment', () => {
  test('a first assignment is balanced', () => {
    expect(assignSticky(5, [fresh('a'), fresh('b')])).toEqual(
      new Map([
        ['a', [0, 1, 2]],
        ['b', [3, 4]],
      ]),
    )
  })

  test('a member that joins takes only its share, a member that leaves gives only its own', () => {
    const two = assignSticky(6, [fresh('a'), fresh('b')])
    const three = assignSticky(6, [...claimsOf(two, 1), fresh('c')])
    expect(three.get('a')).toEqual([0, 1])
    expect(three.get('b')).toEqual([3, 4])
    expect(three.get('c')).toEqual([2, 5])
    const again = assignSticky(
      6,
      claimsOf(three, 2).filter(({ memberId }) => memberId !== 'c'),
    )
    expect(again.get('a')).toEqual(expect.arrayContaining([0, 1]))
    expect(again.get('b')).toEqual(expect.arrayContaining([3, 4]))
  })

  test('of two that claim a unit the one that was given it last keeps it', () => {
    const zombie: MemberClaim = { memberId: 'a', sinceMs: 3, units: [0, 1] }
    const owner: MemberClaim = { memberId: 'b', sinceMs: 4, units: [0, 1] }
    expect(assignSticky(2, [zombie, owner]).get('b')).toHaveLength(1)
    expect(assignSticky(4, [zombie, owner]).get('b')).toEqual([0, 1])
  })

  test('for any claims: each unit has one owner, no member has two more than another', () => {
    const claims = fc.uniqueArray(
      fc.record({
        memberId: fc.string({ minLength: 1, maxLength: 4 }),
        sinceMs: fc.nat({ max: 5 }),
        units: fc.array(fc.integer({ min: -2, max: 40 }), { maxLength: 40 }),
      }),
      { selector: ({ memberId }) => memberId, minLength: 1, maxLength: 8 },
    )
    fc.assert(
      fc.property(fc.nat({ max: 36 }), claims, (unitCount, given) => {
        const assignment = assignSticky(unitCount, given)
        const all = [...assignment.values()].flat().sort((a, b) => a - b)
        expect(all).toEqual(Array.from({ length: unitCount }, (_, unit) => unit))
        const sizes = given.map(({ memberId }) => assignment.get(memberId)?.length ?? -1)
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1)
      }),
      { numRuns: 1_000 },
    )
  })

  test('for any joins and leaves: only as many units move as must', () => {
    const members = fc.uniqueArray(fc.constantFrom<string[]>('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'), {
      minLength: 1,
      maxLength: 8,
    })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 36 }), members, members, (unitCount, before, after) => {
        const first = assignSticky(unitCount, before.map(fresh))
        const claims = claimsOf(first, 1)
        const second = assignSticky(
          unitCount,
          after.map((memberId) => claims.find((claim) => claim.memberId === memberId) ?? fresh(memberId)),
        )
        const [was, is] = [ownersOf(first), ownersOf(second)]
        let moved = 0
        for (const [unit, owner] of is) if (was.get(unit) !== owner) moved++
        // Only these units have to move: the units of members that left, and the units that newcomers need
        // for their shares.
        const fewest = Math.floor(unitCount / after.length)
        const most = Math.ceil(unitCount / after.length)
        const orphans = [...was.values()].filter((owner) => !after.includes(owner)).length
        const newcomers = after.filter((memberId) => !before.includes(memberId)).length
        expect(moved).toBeLessThanOrEqual(Math.max(orphans, newcomers * most) + after.length)
        if (newcomers === 0 && orphans === 0)
          expect(moved).toBeLessThanOrEqual(unitCount - fewest * after.length)
      }),
      { numRuns: 1_000 },
    )
  })
})
