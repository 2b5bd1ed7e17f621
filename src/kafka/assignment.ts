import type { Assignment, Subscription } from './claim.ts'
import { assignSticky } from './sticky.ts'

// Assigns partitions to the members of a group. The functions here are pure. The assignment is sticky and
// balanced, and assigns whole units: partition i of every topic goes to the same member. So one member owns
// everything that concerns a user. Only members that subscribe to a topic get its partitions. While workers
// with a changed ladder are rolled out, members subscribe to different topics. The assignment doesn't look at
// which partitions exist: if a partition can't be read now, its owner waits for it.

export type Subscriber = Subscription & { readonly memberId: string }

/**
 * Returns the partitions of each member, by member id. `partitions` is the number of units. It is used only
 * for an installation whose claims don't contain this number.
 */
export function assignPartitions(
  members: readonly Subscriber[],
  partitions: number,
): ReadonlyMap<string, Assignment> {
  const given = new Map<string, Map<string, number[]>>(members.map(({ memberId }) => [memberId, new Map()]))
  for (const installation of installationsOf(members)) {
    const count = Math.max(...installation.map(({ claim }) => claim.partitions ?? partitions))
    const owners = ownersOf(count, installation)
    for (const topic of new Set(installation.flatMap(({ topics }) => topics))) {
      const subscribers = installation.flatMap(({ memberId, topics }) =>
        topics.includes(topic) ? [memberId] : [],
      )
      for (const [unit, owner] of owners.entries()) {
        const taker = takerOf(unit, owner, subscribers)
        const ofTaker = given.get(taker)
        const units = ofTaker?.get(topic)
        if (units === undefined) ofTaker?.set(topic, [unit])
        else units.push(unit)
      }
    }
  }
  return given
}

/** Returns the member id of each unit's owner. The index in the list is the unit. */
function ownersOf(count: number, members: readonly Subscriber[]): readonly string[] {
  const claims = members.map(({ memberId, claim }) => ({ memberId, ...claim }))
  const owners: string[] = []
  for (const [memberId, units] of assignSticky(count, claims))
    for (const unit of units) owners[unit] = memberId
  return owners
}

/**
 * Returns `owner`, the owner of the unit, if `owner` subscribes to the topic. Otherwise returns another
 * member that subscribes to the topic. The choice doesn't depend on which member leads the group.
 */
function takerOf(unit: number, owner: string, subscribers: readonly string[]): string {
  if (subscribers.includes(owner)) return owner
  return subscribers.toSorted()[unit % subscribers.length] ?? owner
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

/** Returns true if an assignment has partitions, and their topics differ from the topics in `ownTopics`. */
export function isOfOtherTopics(assignment: Assignment, ownTopics: readonly string[]): boolean {
  const given = [...assignment].flatMap(([topic, { length }]) => (length > 0 ? [topic] : []))
  const own = new Set(ownTopics)
  return given.length > 0 && (given.length !== own.size || given.some((topic) => !own.has(topic)))
}
