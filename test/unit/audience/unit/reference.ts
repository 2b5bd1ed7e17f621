import { decodeState } from '../../../../src/audience/records/state-record.ts'
import type { Version } from '../../../../src/audience/records/version.ts'
import { partitionOf } from '../../../../src/message/partitioner.ts'
import { type LogRecord, partitions, type SimulatedLog, topics } from '../simulated-log.ts'

function ranks(one: Version): number[] {
  return [one.atMs, one.isNative ? 1 : 0, one.partition, one.offset]
}

function keyOf(userId: string, audienceId: string): string {
  return `${userId}/${audienceId}`
}

/**
 * Compares two versions. The one with the later time is higher. If the times are equal, a version from its
 * own partition is higher than one from elsewhere. If this doesn't decide either, the higher partition
 * decides, and then the higher offset.
 */
function compareVersions(a: Version, b: Version): number {
  const [of, than] = [ranks(a), ranks(b)]
  const at = of.findIndex((rank, index) => rank !== than[index])
  return at === -1 ? 0 : (of[at] ?? 0) - (than[at] ?? 0)
}

/** A value of a user, as far as receivers care about it. */
export type Held = { readonly value: string; readonly version: Version }

type Fields = {
  type: 'membership' | 'sync'
  audienceId: string
  userId: string
  member: boolean
  changedAt: string
  syncId: string
  snapshotAt: string
  part: number
  parts: number
  userIds: string[]
}

type OpenSync = {
  version: Version
  firstMs: number
  parts: number
  users: Map<number, string[]>
  isRefused: boolean
}

const withinMs = 600_000

/**
 * Returns the state that a unit has to reach. It applies the changes of the unit one after the other, each
 * once, as the design says. It has no batches, crashes or slow writes.
 *
 * Each audience has one property here. `deletedUpToMs` gives a time for each deleted user. No value up to
 * this time counts, whenever the deletion came.
 */
export function referenceOf(
  log: SimulatedLog,
  unit: number,
  deletedUpToMs: ReadonlyMap<string, number>,
): Map<string, Held> {
  const held = new Map<string, Held>()
  const floors = new Map<string, Version>()
  const syncs = new Map<string, OpenSync>()
  const isDeleted = (userId: string, { atMs }: Version): boolean =>
    atMs <= (deletedUpToMs.get(userId) ?? -Infinity)

  for (const { offset, timestampMs, value, headers } of log.records(topics.changes, unit)) {
    const fields = fieldsOf(value)
    const { audienceId } = fields
    const floor = floors.get(audienceId)
    if (fields.type === 'membership') {
      const { userId, member } = fields
      // The change is moved to the unit of its user, and is read again there.
      if (partitionOf(userId, partitions) !== unit) continue
      const [, partition, at] = (headers['origin'] ?? '').split('/').map(Number)
      const isNative = headers['origin'] === undefined
      const version: Version = {
        atMs: Date.parse(fields.changedAt),
        isNative,
        partition: isNative ? unit : (partition ?? -1),
        offset: isNative ? offset : (at ?? -1),
      }
      if (isDeleted(userId, version)) continue
      const key = keyOf(userId, audienceId)
      const before = held.get(key)
      if (before !== undefined && compareVersions(version, before.version) <= 0) continue
      if (floor !== undefined && compareVersions(version, floor) < 0) continue
      held.set(key, { value: String(member), version })
      continue
    }
    const mark = `${audienceId}/${fields.syncId}`
    const version: Version = { atMs: Date.parse(fields.snapshotAt), isNative: true, partition: unit, offset }
    let sync = syncs.get(mark)
    if (sync === undefined) {
      const isRefused = floor !== undefined && compareVersions(version, floor) < 0
      sync = { version, firstMs: timestampMs, parts: fields.parts, users: new Map(), isRefused }
      syncs.set(mark, sync)
    }
    if (sync.isRefused) continue
    const isWrong = fields.userIds.some((userId) => partitionOf(userId, partitions) !== unit)
    const isLate = timestampMs - sync.firstMs > withinMs
    const isOlder = floor !== undefined && compareVersions(sync.version, floor) < 0
    if (isWrong || isLate || isOlder) {
      sync.isRefused = true
      continue
    }
    sync.users.set(fields.part, fields.userIds)
    if (sync.users.size < sync.parts) continue
    sync.isRefused = true
    floors.set(audienceId, sync.version)
    const users = new Set([...sync.users.values()].flat())
    for (const userId of users) {
      if (isDeleted(userId, sync.version)) continue
      const key = keyOf(userId, audienceId)
      const before = held.get(key)
      if (before?.value === 'true') continue
      if (before !== undefined && compareVersions(before.version, sync.version) > 0) continue
      held.set(key, { value: 'true', version: sync.version })
    }
    for (const [key, before] of held) {
      const [userId = '', audience] = key.split('/')
      if (audience !== audienceId || users.has(userId) || before.value !== 'true') continue
      if (compareVersions(before.version, sync.version) > 0) continue
      held.set(key, { value: 'false', version: sync.version })
    }
  }
  return held
}

/**
 * Returns true if a record is a part of a sync whose parts didn't all come in time. Such a sync is refused,
 * and so are its later parts. But only the disk of the owner remembers this refusal. If such a part came once
 * more, an owner without this disk would find all parts there, and in time.
 */
export function isOutOfTime(log: SimulatedLog, unit: number, { value }: LogRecord): boolean {
  const { type, audienceId, syncId, parts } = fieldsOf(value)
  if (type !== 'sync') return false
  const ofSync = log.records(topics.changes, unit).filter((one) => {
    const fields = fieldsOf(one.value)
    return fields.type === 'sync' && fields.audienceId === audienceId && fields.syncId === syncId
  })
  const endMs = (ofSync[0]?.timestampMs ?? Infinity) + withinMs
  const inTime = ofSync.filter(({ timestampMs }) => timestampMs <= endMs)
  return log.nowMs >= endMs && new Set(inTime.map((one) => fieldsOf(one.value).part)).size < parts
}

function fieldsOf(value: Buffer | null): Fields {
  return JSON.parse(value?.toString() ?? '{}')
}

/**
 * Returns the last record of each user and audience in `memberships` of a unit. Compaction leaves these
 * records.
 */
export function lastStates(log: SimulatedLog, unit: number): Map<string, Held> {
  const names = new Map<string, string>()
  const last = new Map<string, Held>()
  for (const { key, value } of log.records(topics.states, unit)) {
    const decoded = decodeState(key, value)
    if (!decoded.ok) throw new Error(decoded.fault)
    const { stateKey, state } = decoded.record
    if (stateKey.kind !== 'property') continue
    const property = keyOf(stateKey.userId, stateKey.property)
    if (state === null || !('since' in state)) last.delete(names.get(property) ?? '')
    else {
      const name = keyOf(stateKey.userId, state.id)
      names.set(property, name)
      last.set(name, { value: state.value, version: state.version })
    }
  }
  return last
}
