import {
  encodeDeletionFloor,
  encodeState,
  encodeStateKey,
  encodeSyncFloor,
  type StateKey,
} from '../../src/audience/records/state-record.ts'
import { commitAsNobody, readCommits, commitOf, placeOf } from '../../src/kafka/other-groups/group-state.ts'
import { partitionOf } from '../../src/message/partitioner.ts'
import { encodeRetryState } from '../../src/retry/retry-state.ts'
import { otherProgram, produce, readAll, type SeenRecord } from './kafka.ts'
import type { Random } from './random.ts'

/**
 * An installation without workers, as workers have left it. It has states, floors and waiting retries. The
 * group has settled some of their records.
 */

export type Installation = { prefix: string; groupId: string; partitions: number }

export const tiers = ['retry.1s', 'retry.2s'] as const

const snapshotAtMs = Date.parse('2026-01-31T12:00:00.000Z')

export type Filling = {
  users: number
  /** The number of records in each tier, and in `replays`. */
  waiting: number
  random: Random
  /** The units in which the sync was not applied. */
  withoutSync?: readonly number[]
}

/** Produces the records, and commits as workers would. */
export async function fill(
  { prefix, groupId, partitions }: Installation,
  { users, waiting, random, withoutSync = [] }: Filling,
): Promise<void> {
  const units = Array.from({ length: partitions }, (_, unit) => unit)
  const names = Array.from({ length: users }, (_, index) => `user-${index}`)
  const stateOf = (user: string, atMs: number): { partition: number; key: string; value: string } => {
    const stateKey: StateKey = { kind: 'property', userId: user, spaceId: 'space', property: 'plan' }
    const partition = partitionOf(user, partitions)
    const version = { atMs, isNative: true, partition, offset: 0 }
    const state = { kind: 'trait', id: 't', name: 'Plan', value: `${atMs}`, version, since: version } as const
    return { partition, key: String(encodeStateKey(stateKey)), value: String(encodeState(state, false)) }
  }
  const floors = names.slice(0, 5).flatMap((user) =>
    units.map((partition) => ({
      partition,
      key: String(encodeStateKey({ kind: 'deletion', userId: user, sourceId: 'space' })),
      value: String(encodeDeletionFloor({ requestedAtMs: 1, requestId: 'r', partition: 0, offset: 0 })),
    })),
  )
  const syncs = units
    .filter((unit) => !withoutSync.includes(unit))
    .map((partition) => ({
      partition,
      key: String(encodeStateKey({ kind: 'sync', spaceId: 'space', audienceId: 'vips' })),
      value: String(
        encodeSyncFloor({
          version: { atMs: snapshotAtMs, isNative: true, partition, offset: 0 },
          syncId: 's1',
        }),
      ),
    }))
  await produce(`${prefix}memberships`, [
    ...names.map((user) => stateOf(user, 1)),
    ...floors,
    ...syncs,
    ...names.map((user) => stateOf(user, 2)),
  ])
  for (const name of [...tiers, 'replays']) {
    const records = Array.from({ length: waiting }, (_, index) => {
      const user = random.pick(names)
      const isProperty = random.oneIn(2)
      return {
        partition: partitionOf(user, partitions),
        key: random.oneIn(10) ? null : user,
        value: `${name}-${index}`,
        headers: headersOf(user, index, isProperty),
      }
    })
    // The records go in several calls, so that the broker gives them different times.
    for (let at = 0; at < records.length; at += 100) await produce(prefix + name, records.slice(at, at + 100))
  }
  await settleSome({ prefix, groupId, partitions }, random)
}

function headersOf(userId: string, index: number, isProperty: boolean): Record<string, string> {
  return encodeRetryState({
    sourceId: 'space',
    destinationId: 'crm',
    messageId: `m-${index}`,
    kind: isProperty ? 'identify' : 'track',
    nextRung: 1,
    attempts: 1,
    firstSeenMs: 1,
    expiresAtMs: 0,
    failedHooks: [],
    notBeforeMs: new Map(),
    lastOutcome: '',
    origin: { topic: 'events', partition: 0, offset: index },
    property: isProperty ? { userId, spaceId: 'space', property: 'plan', since: '2.1.0.0' } : undefined,
    isUncertain: false,
  })
}

/** Settles the first third of each partition, and about one in three of the records above it. */
async function settleSome({ prefix, groupId, partitions }: Installation, random: Random): Promise<void> {
  const commits = []
  for (const name of ['memberships', ...tiers, 'replays']) {
    const topic = prefix + name
    const records = await readAll(topic)
    for (let partition = 0; partition < partitions; partition++) {
      const end = records.filter((record) => record.partition === partition).length
      const offset = Math.floor(end / 3)
      const settledAbove = new Set(
        Array.from({ length: end - offset }, (_, index) => offset + index).filter(() => random.oneIn(3)),
      )
      commits.push(commitOf({ topic, partition, offset, settledAbove, isFinal: true, epoch: 4 }))
    }
  }
  await commitAsNobody(otherProgram(), groupId, commits)
}

/** A record of a topic, and whether the group has settled it. */
export type Standing = SeenRecord & { isSettled: boolean }

export async function standingOf(topic: string, groupId: string): Promise<Standing[]> {
  const admin = otherProgram().admin()
  await admin.connect()
  try {
    const places = (await readCommits(admin, groupId, [topic])).map(placeOf)
    const records = await readAll(topic)
    return records.map((record) => {
      const place = places.find(({ partition }) => partition === record.partition)
      const { offset = -1, settledAbove = new Set<number>() } = place ?? {}
      return { ...record, isSettled: record.offset < offset || settledAbove.has(record.offset) }
    })
  } finally {
    await admin.disconnect()
  }
}

export async function partitionsOf(topic: string): Promise<number> {
  const admin = otherProgram().admin()
  await admin.connect()
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0]?.partitions.length ?? 0
  } finally {
    await admin.disconnect()
  }
}
