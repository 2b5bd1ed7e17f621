import type { Admin, Kafka } from 'kafkajs'
import { believed, unbindMetadata } from './commit-binding.ts'
import { commitAsNobody, type GroupCommit, readCommits, readMembers } from './group-state.ts'
import { partitionName } from './partition-name.ts'
import { isProtocolError, isUnknownMember } from './protocol-error.ts'
import { withAdmin } from './with-admin.ts'

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
  const { topic, partition, offset, metadata } = commit
  if (metadata === null) return commit
  const { moved } = believed({ offset: Number(offset), metadata }, { groupId, topic, partition })
  return moved === undefined ? { ...commit, metadata: unbindMetadata(metadata) } : commit
}

const notAllowed: ReadonlySet<string> = new Set(['GROUP_AUTHORIZATION_FAILED'])

function isMade({ offset }: GroupCommit): boolean {
  return Number(offset) >= 0
}
