import { setTimeout as delay } from 'node:timers/promises'
import { type Admin, AssignerProtocol, type Broker, type Kafka, type MemberDescription } from 'kafkajs'
import { bindRead } from './commit-binding.ts'
import { openCluster } from './open-cluster.ts'
import { isProtocolError } from './protocol-error.ts'

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
