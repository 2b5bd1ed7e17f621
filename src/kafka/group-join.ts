import kafkajs from 'kafkajs'

/** A member of a group, as the group's coordinator knows it. */
export type Membership = { readonly memberId: string; readonly generationId: number }

/** A join that is under way. */
export type Join = {
  /** Of the last join that came to its end: it holds until the group has a new generation. None before the first one under this name. */
  readonly membership: Membership | undefined
}

/** What of kafkajs 2.2.4's `ConsumerGroup` is used. */
type ConsumerGroup = {
  readonly cluster: object
  /** Null when the group has said that it doesn't know the member any more. */
  readonly memberId: string | null | undefined
  /** That of an answered join, even where its assignment never came. */
  readonly generationId: number
}

type Joins = { underWay: number; membership: Membership | undefined }

const joins = new WeakMap<object, Joins>()
/** Of groups that have joined, and got their assignment. */
const memberships = new WeakMap<ConsumerGroup, Membership>()
/** Groups whose last join has failed. */
const failed = new WeakSet<object>()

/** Of the consumer that has this cluster of kafkajs; `undefined` when it isn't joining. Until just after its event GROUP_JOIN. */
export function joinOf(cluster: object): Join | undefined {
  return joins.get(cluster)
}

/**
 * Whether the last join of this group of kafkajs has failed, and none is under way. kafkajs tries nothing but to fetch then: without a
 * name it sends no heartbeat either, and so is never told that it is no member.
 */
export function mustJoin(group: { readonly cluster: object }): boolean {
  return failed.has(group) && !joins.has(group.cluster)
}

/** Sees all joins of kafkajs' consumers from now on. Each of those that fetch from several brokers may begin one. */
export function watchJoins(prototype: { joinAndSync(this: ConsumerGroup): Promise<void> }): void {
  // oxlint-disable-next-line typescript/unbound-method -- it is called on a group below
  const { joinAndSync } = prototype
  prototype.joinAndSync = async function joinAndSyncWatched() {
    const join = joins.get(this.cluster) ?? { underWay: 0, membership: membershipOf(this) }
    joins.set(this.cluster, join)
    join.underWay++
    try {
      await joinAndSync.call(this)
      const { memberId, generationId } = this
      if (typeof memberId === 'string') memberships.set(this, { memberId, generationId })
      join.membership = membershipOf(this)
      failed.delete(this)
    } catch (error) {
      failed.add(this)
      throw asPassing(error)
    } finally {
      join.underWay--
      if (join.underWay === 0) joins.delete(this.cluster)
    }
  }
}

function membershipOf(group: ConsumerGroup): Membership | undefined {
  const membership = memberships.get(group)
  return membership?.memberId === group.memberId ? membership : undefined
}

/** kafkajs takes a coordinator that doesn't answer for one that there never will be, and would try no more. */
function asPassing(error: unknown): unknown {
  const isUnanswered = error instanceof Error && error.name === 'KafkaJSGroupCoordinatorNotFound'
  return isUnanswered ? new kafkajs.KafkaJSError(error) : error
}
