import { setTimeout as delay } from 'node:timers/promises'
import { type Admin, AssignerProtocol, type Broker, type Kafka, type MemberDescription } from 'kafkajs'
import { believed, bindRead, describeMoved, unbindMetadata } from '../wire/commit-binding.ts'
import { openCluster } from '../cluster/open-cluster.ts'
import { isProtocolError, isUnknownMember } from '../wire/errors.ts'
import { decodeCommitMetadata, encodeCommitMetadata } from '../wire/commit-metadata.ts'
import { partitionName } from '../wire/partition-name.ts'
import { withAdmin } from '../cluster/with-admin.ts'

// Functions that read a group and set its offsets. The caller isn't a member of the group.

/** A group's commit for a partition. The offset is -1 if the group has no commit. */
export type GroupCommit = {
  readonly topic: string
  readonly partition: number
  readonly offset: string
  readonly metadata: string | null
}

const lookAgainMs = 250
/**
 * The largest number of commits in one request. A commit has up to 4 KiB of metadata, and a broker writes the
 * commits of a request as one batch of at most 1 MB.
 */
const commitsInRequest = 100

/**
 * Reads the commits of all partitions of these topics. A partition without a commit has the offset -1. Waits
 * at most 20 s while the coordinator is being created or loads its groups.
 */
export async function readCommits(
  admin: Admin,
  groupId: string,
  topics: readonly string[],
): Promise<GroupCommit[]> {
  const deadlineMs = performance.now() + coordinatorWithinMs
  for (;;) {
    try {
      const fetched = await admin.fetchOffsets({ groupId, topics: [...topics] })
      return fetched.flatMap(({ topic, partitions }) => partitions.map((commit) => ({ topic, ...commit })))
    } catch (error) {
      if (!isProtocolError(error, notYet) || performance.now() > deadlineMs) throw error
    }
    await delay(lookAgainMs)
  }
}

const coordinatorWithinMs = 20_000
const notYet: ReadonlySet<string> = new Set([
  'GROUP_LOAD_IN_PROGRESS',
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'NOT_COORDINATOR_FOR_GROUP',
])

/**
 * The states in which the members of a group are joining. In these states, the group doesn't report the
 * topics that its members read.
 */
const joining: ReadonlySet<string> = new Set(['PreparingRebalance', 'CompletingRebalance'])

/**
 * Returns the group's members that read some of the topics, or that may read some of them. While the group is
 * joining, repeats the request for at most `patienceMs`. After that, also returns members whose topics the
 * group doesn't report.
 */
export async function readMembers(
  admin: Admin,
  groupId: string,
  { topics, patienceMs }: { topics?: ReadonlySet<string>; patienceMs: number },
): Promise<string[]> {
  const deadlineMs = performance.now() + patienceMs
  for (;;) {
    const { groups } = await admin.describeGroups([groupId])
    const [group] = groups
    const members = group?.members ?? []
    if (!joining.has(group?.state ?? '') || performance.now() > deadlineMs)
      return members
        .filter((member) => topics === undefined || mayRead(member, topics))
        .map(({ clientId, clientHost }) => `${clientId} at ${clientHost.replace(/^\//, '')}`)
    await delay(lookAgainMs)
  }
}

function mayRead({ memberMetadata }: MemberDescription, topics: ReadonlySet<string>): boolean {
  if (memberMetadata.length === 0) return true
  const subscribed = AssignerProtocol.MemberMetadata.decode(memberMetadata)?.topics ?? []
  return subscribed.some((topic) => topics.has(topic))
}

/** If somebody has moved a group's commit, and has kept its metadata, returns a text that says so. */
export function movedCommit(
  { topic, partition, offset: text, metadata }: GroupCommit,
  groupId: string,
): string | undefined {
  const offset = Number(text)
  const { moved } = believed({ offset, metadata }, { groupId, topic, partition })
  return moved && describeMoved(moved, offset)
}

/**
 * Commits without being a member of the group, as Kafka's own tools do. Brokers accept such a commit only
 * while the group has no members. Binds the commits' metadata to the group and the partitions.
 */
export async function commitAsNobody(
  kafka: Kafka,
  groupId: string,
  commits: readonly GroupCommit[],
): Promise<void> {
  const [first] = commits
  if (first === undefined) return
  const opened = openCluster(kafka)
  const { cluster } = opened
  try {
    await cluster.connect()
    // Without a target topic, kafkajs would ask the brokers about all topics.
    await cluster.addTargetTopic(first.topic)
    const coordinator = await cluster.findGroupCoordinator({ groupId })
    for (let start = 0; start < commits.length; start += commitsInRequest)
      await commitSome(coordinator, groupId, commits.slice(start, start + commitsInRequest))
  } finally {
    await opened.close()
  }
}

async function commitSome(
  coordinator: Broker,
  groupId: string,
  commits: readonly GroupCommit[],
): Promise<void> {
  const bound = commits.map(({ topic, partition, offset, metadata }) => ({
    topic,
    partition,
    offset,
    metadata: metadata && bindRead(metadata, { groupId, topic, partition }, Number(offset)),
  }))
  const byTopic = Map.groupBy(bound, ({ topic }) => topic)
  await coordinator.offsetCommit({
    groupId,
    memberId: '',
    groupGenerationId: -1,
    topics: [...byTopic].map(([topic, partitions]) => ({ topic, partitions })),
  })
}

/** The position of a group in a partition. */
export type GroupPlace = {
  readonly topic: string
  readonly partition: number
  /** The committed offset. -1 if nothing is committed yet. */
  readonly offset: number
  /** The offsets above `offset` whose records are settled. */
  readonly settledAbove: ReadonlySet<number>
  /** True if the last owner has finished all that it had started, or if there was no owner. */
  readonly isFinal: boolean
  readonly epoch: number
  /** The topic's id when the offset was committed, if known. */
  readonly topicId: string | undefined
}

export function placeOf({ topic, partition, offset: text, metadata }: GroupCommit): GroupPlace {
  const offset = Number(text)
  const memory = decodeCommitMetadata(offset, metadata)
  const hasBegun = memory?.begunBelow !== undefined && memory.begunBelow > offset
  return {
    topic,
    partition,
    offset,
    settledAbove: new Set(memory?.settledAbove),
    isFinal: offset < 0 || (memory?.isFinal === true && !hasBegun),
    epoch: memory?.epoch ?? 0,
    topicId: memory?.topicId,
  }
}

/**
 * Returns a commit from which `placeOf` reads this place again. Leaves out settled offsets that are too far
 * above the committed offset for the metadata.
 */
export function commitOf({
  topic,
  partition,
  offset,
  settledAbove,
  ...mark
}: Omit<GroupPlace, 'topicId'>): GroupCommit {
  const metadata = encodeCommitMetadata(offset, settledAbove, mark)
  return { topic, partition, offset: String(offset), metadata }
}

export type Inheritance =
  /** The group `to` already has every commit that `from` has for these topics. */
  | { kind: 'complete' }
  | { kind: 'taken'; partitions: number }
  /**
   * Members of `from` read some of the topics, or may read some of them. If the commits were copied now, both
   * groups would read these topics and make the same deliveries.
   */
  | { kind: 'inUse'; members: readonly string[] }
  /** Kafka doesn't let this user read the group `from`. */
  | { kind: 'forbidden' }

export type Inheriting = {
  kafka: Kafka
  from: string
  to: string
  /** The topics whose commits are copied. All these topics must exist. */
  topics: readonly string[]
  /**
   * The time that a rebalance of `from` may take, in milliseconds. If `from` doesn't report the topics of a
   * member by then, the member is assumed to read the topics.
   */
  patienceMs?: number
}

const defaultPatienceMs = 15_000

/**
 * Copies the commits of `topics` from one consumer group to another, with their metadata, before a member
 * joins `to`. If `to` already has a commit for a partition, that commit stays. Several processes may copy at
 * the same time. Brokers accept the copied commits only while `to` has no member, so no process sets back the
 * offsets of a group that has started. If a copy is interrupted, the next call completes it.
 */
export async function inheritCommits(inheriting: Inheriting): Promise<Inheritance> {
  const { kafka, to } = inheriting
  return withAdmin(kafka, async (admin) => {
    const found = await findInherited(admin, inheriting)
    if ('kind' in found) return found
    try {
      await commitAsNobody(kafka, to, found)
    } catch (error) {
      // The commit may be refused because another process has copied everything, and a member has joined
      // since.
      const left = isUnknownMember(error) ? await findInherited(admin, inheriting) : undefined
      if (left !== undefined && 'kind' in left) return left
      throw error
    }
    return { kind: 'taken', partitions: found.length }
  })
}

/** Returns the commits that `from` has and `to` lacks, or the reason why no commit is copied. */
async function findInherited(
  admin: Admin,
  { from, to, topics, patienceMs = defaultPatienceMs }: Inheriting,
): Promise<Inheritance | readonly GroupCommit[]> {
  const without = (await readCommits(admin, to, topics)).filter((commit) => !isMade(commit))
  if (without.length === 0) return { kind: 'complete' }
  const names = new Set(without.map(partitionName))
  try {
    const commits = await readCommits(admin, from, topics)
    const missing = commits.filter((commit) => isMade(commit) && names.has(partitionName(commit)))
    if (missing.length === 0) return { kind: 'complete' }
    const members = await readMembers(admin, from, { topics: new Set(topics), patienceMs })
    return members.length > 0 ? { kind: 'inUse', members } : missing.map((commit) => heirOf(commit, from))
  } catch (error) {
    if (isProtocolError(error, notAllowed)) return { kind: 'forbidden' }
    throw error
  }
}

/**
 * Returns a commit that another group may make. Its metadata is bound to that group when the commit is made.
 * But if somebody has moved the commit, its metadata stays as it is, so that the next owner sees this.
 */
function heirOf(commit: GroupCommit, groupId: string): GroupCommit {
  const { metadata } = commit
  if (metadata === null) return commit
  return movedCommit(commit, groupId) === undefined
    ? { ...commit, metadata: unbindMetadata(metadata) }
    : commit
}

const notAllowed: ReadonlySet<string> = new Set(['GROUP_AUTHORIZATION_FAILED'])

function isMade({ offset }: GroupCommit): boolean {
  return Number(offset) >= 0
}
