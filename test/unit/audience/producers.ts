import { iso, type SimulatedLog, topics, usersOf } from './simulated-log.ts'

/** A user of unit 0. Records are about this user if a test names no other user. */
export const [ann = ''] = usersOf(0, 1)

type Change = {
  user?: string
  member?: boolean
  audience?: string
  name?: string
  agoMs?: number
  partition?: number
  source?: string
}

/** Appends a record of a user who enters or leaves an audience. */
export function change(
  log: SimulatedLog,
  {
    user = ann,
    member = true,
    audience = 'a1',
    name = 'Lions',
    agoMs = 0,
    partition = 0,
    source = 'space',
  }: Change = {},
): void {
  const value = {
    type: 'membership',
    audienceId: audience,
    audienceName: name,
    userId: user,
    member,
    changedAt: iso(log.nowMs - agoMs),
  }
  log.append(topics.changes, partition, {
    value: Buffer.from(JSON.stringify(value)),
    headers: { 'source-id': source },
  })
}

/** Appends a record of one part of a sync. */
export function part(
  log: SimulatedLog,
  fields: {
    syncId: string
    userIds: string[]
    part?: number
    parts?: number
    agoMs?: number
    audience?: string
  },
): void {
  const { syncId, userIds, part: number = 1, parts = 1, agoMs = 0, audience = 'a1' } = fields
  const value = {
    type: 'sync',
    audienceId: audience,
    audienceName: 'Lions',
    syncId,
    snapshotAt: iso(log.nowMs - agoMs),
    part: number,
    parts,
    userIds,
  }
  log.append(topics.changes, 0, {
    value: Buffer.from(JSON.stringify(value)),
    headers: { 'source-id': 'space' },
  })
}

/** Appends a record of a request for the deletion of a user. */
export function remove(
  log: SimulatedLog,
  { requestId = 'r1', userId = ann, sources = ['space', 'web'], agoMs = 0 } = {},
): void {
  const value = { requestId, userId, sources, requestedAt: iso(log.nowMs - agoMs) }
  log.append(topics.deletions, 0, { value: Buffer.from(JSON.stringify(value)) })
}
