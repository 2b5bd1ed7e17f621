import { setTimeout as delay } from 'node:timers/promises'
import { type Admin, AssignerProtocol, type Broker, type Kafka, type MemberDescription } from 'kafkajs'
import { openCluster } from './open-cluster.ts'
import { isProtocolError } from './protocol-error.ts'

/** Looks at a group, and sets its offsets, without being a member of it. */

/** What a group has for a partition; offset -1 where it has nothing. */
export type GroupCommit = {
  readonly topic: string
  readonly partition: number
  readonly offset: string
  readonly metadata: string | null
}

const lookAgainMs = 250
/**
 * A commit carries up to 4 KiB of metadata, and a broker writes those of one request as one batch of at most
 * 1 MB.
 */
const commitsInRequest = 100

/**
 * One for each partition, also where there is none. A coordinator that is being made, or loads its groups, is
 * waited for.
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

/** While a group is being joined it doesn't tell what its members read. */
const joining: ReadonlySet<string> = new Set(['PreparingRebalance', 'CompletingRebalance'])

/**
 * Who is in the group, and reads some of the topics or may do so. While it is being joined it is asked again,
 * for `patienceMs`; then all its members count.
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

/**
 * As the tools of Kafka set offsets: by no member, in no generation. Brokers take that only while the group
 * has no member.
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
    // So that the brokers needn't tell about all.
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
  const byTopic = Map.groupBy(commits, ({ topic }) => topic)
  await coordinator.offsetCommit({
    groupId,
    memberId: '',
    groupGenerationId: -1,
    topics: [...byTopic].map(([topic, partitions]) => ({ topic, partitions })),
  })
}
