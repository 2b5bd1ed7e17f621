import { ByteReader, ByteWriter } from './bytes.ts'
import type { WireRequest } from './wire-request.ts'

// The requests of a member to its group's coordinator, in versions that aren't flexible (KIP-482). A decoded
// answer has its error codes at the same places as the broker's answer. Source: the Kafka protocol, and
// KIP-345 for instance ids.

const apiKeys = {
  OffsetCommit: 8,
  OffsetFetch: 9,
  FindCoordinator: 10,
  JoinGroup: 11,
  Heartbeat: 12,
  LeaveGroup: 13,
  SyncGroup: 14,
  DescribeGroups: 15,
} as const

/** The member that sends a request. The coordinator refuses an id or a generation that is out of date. */
export type Identity = {
  readonly memberId: string
  readonly generationId: number
  readonly instanceId: string | undefined
}

export type Answer = { readonly errorCode: number }

function request<A>(
  apiName: keyof typeof apiKeys,
  [lowest, highest]: readonly [number, number],
  write: (out: ByteWriter, version: number) => void,
  read: (from: ByteReader, version: number) => A,
  timeoutMs?: number,
): WireRequest<A> {
  return {
    apiKey: apiKeys[apiName],
    apiName,
    lowest,
    highest,
    ...(timeoutMs !== undefined && { timeoutMs }),
    write(version) {
      const out = new ByteWriter()
      write(out, version)
      return out.finished()
    },
    read: (bytes, version) => read(new ByteReader(bytes), version),
  }
}

/**
 * The first version of each request in which a member may have an instance id. These versions came with Kafka
 * 2.3.
 */
const withInstance = { join: 5, sync: 3, heartbeat: 3, leave: 3, commit: 7 } as const

function versions(
  of: keyof typeof withInstance,
  lowest: number,
  instanceId: string | undefined,
): readonly [number, number] {
  return [instanceId === undefined ? lowest : withInstance[of], withInstance[of]]
}

export type Coordinator = Answer & { readonly nodeId: number }

/** Kafka's codes for the kinds of coordinators. */
const coordinatorTypes = { group: 0, transaction: 1 } as const
export type CoordinatorType = keyof typeof coordinatorTypes

/** Asks for the coordinator of a group, or of a transactional id. */
export function findCoordinator(id: string, type: CoordinatorType = 'group'): WireRequest<Coordinator> {
  return request(
    'FindCoordinator',
    [1, 2],
    (out) => out.string(id).int8(coordinatorTypes[type]),
    (from) => {
      from.int32()
      const errorCode = from.int16()
      from.string()
      return { errorCode, nodeId: from.int32() }
    },
  )
}

export type JoinRequest = {
  readonly groupId: string
  readonly memberId: string
  readonly instanceId: string | undefined
  readonly sessionTimeoutMs: number
  readonly rebalanceTimeoutMs: number
  readonly protocol: string
  /** The member's subscription, in the format of the consumer protocol. */
  readonly metadata: Buffer
}

export type JoinedMember = { readonly memberId: string; readonly metadata: Buffer }

export type JoinAnswer = Answer & {
  readonly generationId: number
  readonly leaderId: string
  readonly memberId: string
  /** All members of the group, if this member is the group's leader. Empty for other members. */
  readonly members: readonly JoinedMember[]
}

/**
 * The answer to a join may take this many milliseconds longer than the rebalance timeout or the session
 * timeout, whichever is longer. A broker holds this answer back until all members have joined.
 */
const joinSlackMs = 5_000

export function joinGroup(join: JoinRequest): WireRequest<JoinAnswer> {
  const { instanceId } = join
  return request(
    'JoinGroup',
    versions('join', 2, instanceId),
    (out, version) => {
      out.string(join.groupId).int32(join.sessionTimeoutMs).int32(join.rebalanceTimeoutMs)
      out.string(join.memberId)
      if (version >= withInstance.join) out.string(instanceId ?? null)
      out.string('consumer').array([join], ({ protocol, metadata }) => out.string(protocol).bytes(metadata))
    },
    (from, version) => {
      from.int32()
      const errorCode = from.int16()
      const generationId = from.int32()
      from.string()
      const leaderId = from.string()
      const memberId = from.string()
      const members = from.array(() => {
        const joined = from.string()
        if (version >= withInstance.join) from.nullableString()
        return { memberId: joined, metadata: from.data() }
      })
      return { errorCode, generationId, leaderId, memberId, members }
    },
    Math.max(join.rebalanceTimeoutMs, join.sessionTimeoutMs) + joinSlackMs,
  )
}

export type SyncAnswer = Answer & { readonly assignment: Buffer }

/**
 * Asks for the member's assignment. The group's leader sends the assignments of all members, by member id.
 * For any other member, `assignments` is empty.
 */
export function syncGroup(
  groupId: string,
  { memberId, generationId, instanceId }: Identity,
  assignments: ReadonlyMap<string, Buffer>,
): WireRequest<SyncAnswer> {
  return request(
    'SyncGroup',
    versions('sync', 1, instanceId),
    (out, version) => {
      out.string(groupId).int32(generationId).string(memberId)
      if (version >= withInstance.sync) out.string(instanceId ?? null)
      out.array([...assignments], ([member, assignment]) => out.string(member).bytes(assignment))
    },
    (from) => {
      from.int32()
      return { errorCode: from.int16(), assignment: from.data() }
    },
  )
}

export function heartbeat(
  groupId: string,
  { memberId, generationId, instanceId }: Identity,
): WireRequest<Answer> {
  return request(
    'Heartbeat',
    versions('heartbeat', 1, instanceId),
    (out, version) => {
      out.string(groupId).int32(generationId).string(memberId)
      if (version >= withInstance.heartbeat) out.string(instanceId ?? null)
    },
    (from) => {
      from.int32()
      return { errorCode: from.int16() }
    },
  )
}

/**
 * Removes the member with the member id from the group. If the member id is empty, removes the member that
 * has the instance id.
 */
export function leaveGroup(
  groupId: string,
  { memberId, instanceId }: Pick<Identity, 'memberId' | 'instanceId'>,
): WireRequest<Answer> {
  return request(
    'LeaveGroup',
    versions('leave', 1, instanceId),
    (out, version) => {
      out.string(groupId)
      if (version < withInstance.leave) out.string(memberId)
      else out.array([memberId], (member) => out.string(member).string(instanceId ?? null))
    },
    (from, version) => {
      from.int32()
      const errorCode = from.int16()
      if (version < withInstance.leave || errorCode !== 0) return { errorCode }
      const codes = from.array(() => {
        from.string()
        from.nullableString()
        return from.int16()
      })
      return { errorCode: codes[0] ?? 0 }
    },
  )
}

export type DescribedMember = {
  readonly memberId: string
  readonly instanceId: string | null
  readonly clientId: string
  /** The member's subscription at its last join. Empty while the group is joining again. */
  readonly metadata: Buffer
}

export type Described = Answer & { readonly state: string; readonly members: readonly DescribedMember[] }

export function describeGroup(groupId: string): WireRequest<Described> {
  return request(
    'DescribeGroups',
    [1, 4],
    (out, version) => {
      out.array([groupId], (group) => out.string(group))
      if (version >= 3) out.bool(false)
    },
    (from, version) => {
      from.int32()
      const [described] = from.array(() => readDescribed(from, version))
      return described ?? { errorCode: 0, state: 'Dead', members: [] }
    },
  )
}

function readDescribed(from: ByteReader, version: number): Described {
  const errorCode = from.int16()
  from.string()
  const state = from.string()
  from.string()
  from.string()
  const members = from.array(() => {
    const memberId = from.string()
    const instanceId = version >= 4 ? from.nullableString() : null
    const clientId = from.string()
    from.string()
    const metadata = from.data()
    from.data()
    return { memberId, instanceId, clientId, metadata }
  })
  if (version >= 3) from.int32()
  return { errorCode, state, members }
}

export type CommitEntry = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /**
   * The leader epoch in which the record before the offset was written. -1 if the epoch isn't known, or if
   * the broker keeps no epochs.
   */
  readonly leaderEpoch: number
  readonly metadata: string | null
}

export type PartitionCode = {
  readonly topic: string
  readonly partition: number
  readonly errorCode: number
}

export function commitOffsets(
  groupId: string,
  { memberId, generationId, instanceId }: Identity,
  entries: readonly CommitEntry[],
): WireRequest<readonly PartitionCode[]> {
  return request(
    'OffsetCommit',
    versions('commit', 3, instanceId),
    (out, version) => {
      out.string(groupId).int32(generationId).string(memberId)
      if (version >= withInstance.commit) out.string(instanceId ?? null)
      // -1 means that the broker's setting decides how long the commits are kept.
      if (version < 5) out.int64(-1)
      out.array([...Map.groupBy(entries, ({ topic }) => topic)], ([topic, ofTopic]) => {
        out.string(topic).array(ofTopic, ({ partition, offset, leaderEpoch, metadata }) => {
          out.int32(partition).int64(offset)
          if (version >= 6) out.int32(leaderEpoch)
          out.string(metadata)
        })
      })
    },
    (from) => {
      from.int32()
      return from
        .array(() => {
          const topic = from.string()
          return from.array(() => ({ topic, partition: from.int32(), errorCode: from.int16() }))
        })
        .flat()
    },
  )
}

export type FetchedCommit = CommitEntry & Answer

export type FetchedCommits = Answer & { readonly partitions: readonly FetchedCommit[] }

export function fetchCommits(
  groupId: string,
  wanted: readonly Pick<CommitEntry, 'topic' | 'partition'>[],
): WireRequest<FetchedCommits> {
  return request(
    'OffsetFetch',
    [3, 5],
    (out) => {
      out.string(groupId)
      out.array([...Map.groupBy(wanted, ({ topic }) => topic)], ([topic, ofTopic]) =>
        out.string(topic).array(ofTopic, ({ partition }) => out.int32(partition)),
      )
    },
    (from, version) => {
      from.int32()
      const partitions = from.array(() => readCommits(from, version)).flat()
      return { errorCode: from.int16(), partitions }
    },
  )
}

function readCommits(from: ByteReader, version: number): FetchedCommit[] {
  const topic = from.string()
  return from.array(() => {
    const partition = from.int32()
    const offset = from.int64()
    const leaderEpoch = version >= 5 ? from.int32() : -1
    return { topic, partition, offset, leaderEpoch, metadata: from.nullableString(), errorCode: from.int16() }
  })
}
