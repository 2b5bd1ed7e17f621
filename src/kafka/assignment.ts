import type { Assignment, Subscription } from './claim.ts'
import { assignSticky } from './sticky.ts'

/**
 * Who gets which partitions. Pure. In units, sticky and balanced: partition i of every topic goes to the same
 * member, so that one worker owns all that concerns a user. A topic is given only to those that subscribe to
 * it: while a ladder changes step by step, some members have another one. What exists of the topics isn't
 * looked at: a partition that can't be read now is waited for by its owner.
 */

export type Subscriber = Subscription & { readonly memberId: string }

/** `partitions`: of the topics of members that don't say how many they have. */
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

/** By unit. */
function ownersOf(count: number, members: readonly Subscriber[]): readonly string[] {
  const claims = members.map(({ memberId, claim }) => ({ memberId, ...claim }))
  const owners: string[] = []
  for (const [memberId, units] of assignSticky(count, claims))
    for (const unit of units) owners[unit] = memberId
  return owners
}

/** The unit's owner where it reads the topic; else one that does, the same whoever leads the group. */
function takerOf(unit: number, owner: string, subscribers: readonly string[]): string {
  if (subscribers.includes(owner)) return owner
  return subscribers.toSorted()[unit % subscribers.length] ?? owner
}

/**
 * Members that have a topic in common, over others or directly. Of one group they should be one: others are
 * somebody else's.
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

/** Topics that others in the group subscribe to and that have nothing to do with ours. Sorted. */
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

/** Whether partitions were assigned to a member of other topics than it has now. */
export function isOfOtherTopics(assignment: Assignment, ownTopics: readonly string[]): boolean {
  const given = [...assignment].flatMap(([topic, { length }]) => (length > 0 ? [topic] : []))
  const own = new Set(ownTopics)
  return given.length > 0 && (given.length !== own.size || given.some((topic) => !own.has(topic)))
}
