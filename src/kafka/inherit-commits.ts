import { setTimeout as delay } from 'node:timers/promises'
import { type Admin, AssignerProtocol, type Broker, type Kafka, type MemberDescription } from 'kafkajs'
import { openCluster } from './open-cluster.ts'
import { isProtocolError, isUnknownMember } from './protocol-error.ts'
import { withAdmin } from './with-admin.ts'

export type Inheritance =
  /** There is nothing that `to` doesn't have. */
  | { kind: 'complete' }
  | { kind: 'taken'; partitions: number }
  /** Members of `from` read some of the topics, or may do so: both groups would deliver the same. */
  | { kind: 'inUse'; members: readonly string[] }
  /** The user may not look at `from`. */
  | { kind: 'forbidden' }

export type Inheriting = {
  kafka: Kafka
  from: string
  to: string
  /** All of them exist. */
  topics: readonly string[]
  /** How long a rebalance of `from` may take before its members count as readers of the topics. */
  patienceMs?: number
}

type Commit = { topic: string; partition: number; offset: string; metadata: string | null }

const defaultPatienceMs = 15_000
const lookAgainMs = 250
/** A commit carries up to 4 KiB of metadata, and a broker writes those of one request as one batch of at most 1 MB. */
const commitsInRequest = 100

/**
 * Copies the commits of `topics` from one consumer group to another, with what they remember, before a member joins `to`. A
 * partition that `to` has a commit of keeps it. Several processes may do so at once: brokers take such a commit only while `to` has
 * no member, so none puts back a group that has begun. What was copied in part is completed by the next call.
 */
export async function inheritCommits(inheriting: Inheriting): Promise<Inheritance> {
  return withAdmin(inheriting.kafka, async (admin) => {
    const found = await findInherited(admin, inheriting)
    if ('kind' in found) return found
    try {
      await copy(inheriting, found)
    } catch (error) {
      // Another process has copied all of it, and joined.
      const left = isUnknownMember(error) ? await findInherited(admin, inheriting) : undefined
      if (left !== undefined && 'kind' in left) return left
      throw error
    }
    return { kind: 'taken', partitions: found.length }
  })
}

/** What `from` has and `to` hasn't, when nobody uses it. */
async function findInherited(
  admin: Admin,
  { from, to, topics, patienceMs = defaultPatienceMs }: Inheriting,
): Promise<Inheritance | readonly Commit[]> {
  const without = (await readCommits(admin, to, topics)).filter((commit) => !isMade(commit))
  if (without.length === 0) return { kind: 'complete' }
  const names = new Set(without.map(nameOf))
  try {
    const commits = await readCommits(admin, from, topics)
    const missing = commits.filter((commit) => isMade(commit) && names.has(nameOf(commit)))
    if (missing.length === 0) return { kind: 'complete' }
    const members = await readersOf(admin, from, { topics: new Set(topics), patienceMs })
    return members.length > 0 ? { kind: 'inUse', members } : missing
  } catch (error) {
    if (isProtocolError(error, notAllowed)) return { kind: 'forbidden' }
    throw error
  }
}

const notAllowed: ReadonlySet<string> = new Set(['GROUP_AUTHORIZATION_FAILED'])

/** One for each partition, also where there is none. A coordinator that is being made, or loads its groups, is waited for. */
async function readCommits(admin: Admin, groupId: string, topics: readonly string[]): Promise<Commit[]> {
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

function isMade({ offset }: Commit): boolean {
  return Number(offset) >= 0
}

/** While a group is being joined it doesn't tell what its members read. */
const joining: ReadonlySet<string> = new Set(['PreparingRebalance', 'CompletingRebalance'])

async function readersOf(
  admin: Admin,
  groupId: string,
  { topics, patienceMs }: { topics: ReadonlySet<string>; patienceMs: number },
): Promise<string[]> {
  const deadlineMs = performance.now() + patienceMs
  for (;;) {
    const { groups } = await admin.describeGroups([groupId])
    const [group] = groups
    const members = group?.members ?? []
    if (!joining.has(group?.state ?? '') || performance.now() > deadlineMs)
      return members
        .filter((member) => mayRead(member, topics))
        .map(({ clientId, clientHost }) => `${clientId} at ${clientHost.replace(/^\//, '')}`)
    await delay(lookAgainMs)
  }
}

function mayRead({ memberMetadata }: MemberDescription, topics: ReadonlySet<string>): boolean {
  if (memberMetadata.length === 0) return true
  const subscribed = AssignerProtocol.MemberMetadata.decode(memberMetadata)?.topics ?? []
  return subscribed.some((topic) => topics.has(topic))
}

async function copy({ kafka, to, topics }: Inheriting, commits: readonly Commit[]): Promise<void> {
  const opened = openCluster(kafka)
  const { cluster } = opened
  try {
    await cluster.connect()
    // So that the brokers needn't tell about all.
    await cluster.addTargetTopic(topics[0] ?? '')
    const coordinator = await cluster.findGroupCoordinator({ groupId: to })
    for (let start = 0; start < commits.length; start += commitsInRequest)
      await commitAsNobody(coordinator, to, commits.slice(start, start + commitsInRequest))
  } finally {
    await opened.close()
  }
}

/** As the tools of Kafka set offsets: by no member, in no generation. */
async function commitAsNobody(
  coordinator: Broker,
  groupId: string,
  commits: readonly Commit[],
): Promise<void> {
  const byTopic = Map.groupBy(commits, ({ topic }) => topic)
  await coordinator.offsetCommit({
    groupId,
    memberId: '',
    groupGenerationId: -1,
    topics: [...byTopic].map(([topic, partitions]) => ({ topic, partitions })),
  })
}

function nameOf({ topic, partition }: Commit): string {
  return `${topic}/${partition}`
}
