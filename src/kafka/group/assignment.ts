import type { Assignment, Subscription } from './claim.ts'
import { assignSticky } from './sticky.ts'

// Assigns partitions to the members of a group. The functions here are pure. The assignment is sticky and
// balanced, and assigns whole units: partition i of every topic goes to the same member. So one member owns
// everything that concerns a user. Only members that subscribe to a topic get its partitions. Members may
// subscribe to different topics, for example while workers with changed retry waits are rolled out. If the
// owner of a unit doesn't subscribe to a topic, nobody reads the unit's partition of this topic. The
// partition waits until a member that subscribes to the topic owns the unit. A partition is also assigned if
// it can't be read now. Its owner then waits for it.

export type Subscriber = Subscription & { readonly memberId: string }

/**
 * Returns the partitions of each member, by member id. `partitions` is the number of units. In most cases,
 * the claims of the members contain this number, and `partitions` isn't used.
 */
export function assignPartitions(
  members: readonly Subscriber[],
  partitions: number,
): ReadonlyMap<string, Assignment> {
  const given = new Map<string, Assignment>(members.map(({ memberId }) => [memberId, new Map()]))
  for (const installation of installationsOf(members)) {
    const count = Math.max(...installation.map(({ claim }) => claim.partitions ?? partitions))
    const claims = installation.map(({ memberId, claim }) => ({ memberId, ...claim }))
    const unitsOf = assignSticky(count, claims)
    for (const { memberId, topics } of installation) {
      const units = unitsOf.get(memberId) ?? []
      if (units.length > 0) given.set(memberId, new Map(topics.map((topic) => [topic, units])))
    }
  }
  return given
}

/**
 * Groups members into installations. Two members belong to one installation if they share a topic, directly
 * or through other members. A consumer group should have only one installation. The members of a second
 * installation have joined the group by mistake.
 */
function installationsOf<T extends { readonly topics: readonly string[] }>(
  members: readonly T[],
): readonly (readonly T[])[] {
  let installations: { topics: Set<string>; members: T[] }[] = []
  for (const member of members) {
    const isOurs = ({ topics }: { topics: Set<string> }): boolean =>
      member.topics.some((topic) => topics.has(topic))
    const merged = { topics: new Set(member.topics), members: [member] }
    for (const { topics, members: others } of installations.filter(isOurs)) {
      for (const topic of topics) merged.topics.add(topic)
      merged.members.push(...others)
    }
    installations = [...installations.filter((one) => !isOurs(one)), merged]
  }
  return installations.map(({ members: ofOne }) => ofOne)
}

/**
 * Returns the topics of the other installations in the group, sorted. `ownTopics` are the topics of this
 * member. Members of another installation read none of these topics.
 */
export function foreignTopics(
  members: readonly Subscription[],
  ownTopics: readonly string[],
): readonly string[] {
  const own = new Set(ownTopics)
  const foreign = installationsOf(members).filter(
    (installation) => !installation.some(({ topics }) => topics.some((topic) => own.has(topic))),
  )
  return [...new Set(foreign.flat().flatMap(({ topics }) => topics))].sort()
}

/** Returns true if an assignment isn't empty, and its topics aren't exactly the topics in `ownTopics`. */
export function isOfOtherTopics(assignment: Assignment, ownTopics: readonly string[]): boolean {
  const given = [...assignment].flatMap(([topic, { length }]) => (length > 0 ? [topic] : []))
  const own = new Set(ownTopics)
  return given.length > 0 && (given.length !== own.size || given.some((topic) => !own.has(topic)))
}
