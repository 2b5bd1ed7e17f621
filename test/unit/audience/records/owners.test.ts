import { afterEach, describe, expect, test } from 'vitest'
import { isMemberText } from '../../../../src/audience/store/entry.ts'
import { encodeState, encodeStateKey } from '../../../../src/audience/records/state-record.ts'
import { metaKey, propertyPrefix } from '../../../../src/audience/store/store-keys.ts'
import { parseVersion, type Version, type PropertyState } from '../../../../src/audience/records/version.ts'
import {
  iso,
  type LogRecord,
  partitions,
  SimulatedLog,
  SimulatedOwner,
  topics,
  turns,
  usersOf,
} from '../simulated-log.ts'

/**
 * Tests of what receivers get when another owner writes late, when users are deleted, and when audiences end.
 */

const [ann = '', bob = ''] = usersOf(0, 2)
const spaceId = 'space'
const stateKey = { kind: 'property', userId: ann, spaceId, property: 'lions' } as const
const owners: SimulatedOwner[] = []

afterEach(() => {
  for (const owner of owners.splice(0)) owner.kill(() => false)
})

async function open(log = new SimulatedLog(), machine = 1): Promise<SimulatedOwner> {
  const owner = new SimulatedOwner(log, { machine })
  owners.push(owner)
  await owner.begin()
  return owner
}

type Sent = { user?: string; member?: boolean; agoMs: number }

function change(log: SimulatedLog, { user = ann, member = true, agoMs }: Sent): void {
  send(log, {
    type: 'membership',
    audienceId: 'a1',
    audienceName: 'Lions',
    userId: user,
    member,
    changedAt: iso(log.nowMs - agoMs),
  })
}

type Synced = { userIds: readonly string[]; agoMs: number; audience?: string; name?: string; key?: string }

function sync(log: SimulatedLog, { userIds, agoMs, audience = 'a1', name = 'Lions', key }: Synced): void {
  send(log, {
    type: 'sync',
    audienceId: audience,
    audienceName: name,
    ...(key !== undefined && { audienceKey: key }),
    syncId: `${audience} ${agoMs} ms ago`,
    snapshotAt: iso(log.nowMs - agoMs),
    part: 1,
    parts: 1,
    userIds,
  })
}

function send(log: SimulatedLog, value: object): void {
  log.append(topics.changes, 0, {
    value: Buffer.from(JSON.stringify(value)),
    headers: { 'source-id': spaceId },
  })
}

function remove(log: SimulatedLog, agoMs: number): void {
  const value = { requestId: 'r1', userId: ann, sources: [spaceId], requestedAt: iso(log.nowMs - agoMs) }
  log.append(topics.deletions, 0, { value: Buffer.from(JSON.stringify(value)) })
}

/** Appends a state of Ann that another owner has written and nobody has read yet. */
function foreign(log: SimulatedLog, { member, agoMs, since }: Sent & { since?: Version }): LogRecord {
  const version = { atMs: log.nowMs - agoMs, isNative: true, partition: 0, offset: 99 }
  const state: PropertyState = {
    kind: 'audience',
    id: 'a1',
    name: 'Lions',
    value: String(member ?? true),
    version,
    since: since ?? version,
  }
  const value = encodeState(state, since !== undefined)
  return log.append(topics.states, 0, { key: encodeStateKey(stateKey), value })
}

async function run(owner: SimulatedOwner): Promise<void> {
  for (let round = 0; round < 3; round++) {
    for (const topic of Object.values(topics)) {
      for (let unit = 0; unit < partitions; unit++) owner.deliver(topic, unit)
    }
    await owner.landAll()
  }
  expect(owner.faults).toEqual([])
  expect(owner.out.size).toBe(0)
}

/** Delivers the changes, and resolves when the writes that follow from them are under way. */
async function take(owner: SimulatedOwner): Promise<void> {
  owner.deliver(topics.changes, 0)
  await turns()
}

const told = (log: SimulatedLog): string[] =>
  log.delivered.map(
    ({ identify }) => `${identify.userId} ${JSON.stringify(JSON.parse(identify.body.toString()).traits)}`,
  )
const reasons = (log: SimulatedLog): string[] => log.dead.map(({ reason }) => reason)

/**
 * Returns whether the store of a machine has the user as a member, or `undefined` if the store has no state
 * of the user.
 */
function isMember(log: SimulatedLog, machine = 1, user = ann): boolean | undefined {
  const key = propertyPrefix(spaceId, 'lions') + user
  const text = log.disks.get(`machine-${machine}/unit-0`)?.get(key)?.toString()
  return text === undefined ? undefined : isMemberText(text)
}

function positionOf(log: SimulatedLog): unknown {
  const meta: { position?: unknown } = JSON.parse(
    log.disks.get('machine-1/unit-0')?.get(metaKey)?.toString() ?? '{}',
  )
  return meta.position
}

async function judge(owner: SimulatedOwner, index: number, isUncertain = false) {
  const identify = owner.log.delivered[index]?.identify
  if (identify === undefined) throw new Error('it was not delivered')
  const { userId, property, since, body } = identify
  const judgement = await owner.units.judge({
    unit: 0,
    sourceId: spaceId,
    firstSeenMs: owner.log.nowMs,
    property: { userId, spaceId, property, since },
    body,
    isUncertain,
  })
  const traits: unknown = 'body' in judgement ? JSON.parse(judgement.body.toString()).traits : undefined
  return { kind: judgement.kind, traits }
}

const isIn = `${ann} {"lions":true}`
const isOut = `${ann} {"lions":false}`

describe('an older value that another owner writes late', () => {
  test('is not told where the newer one was told before it, and never with its own version', async () => {
    const owner = await open()
    const { log } = owner
    change(log, { agoMs: 300 })
    await run(owner)
    change(log, { agoMs: 100 })
    await run(owner)
    foreign(log, { member: false, agoMs: 200 })
    await run(owner)
    expect(isMember(log)).toBe(true)
    expect(told(log)).toEqual([isIn, isIn])
    expect(owner.notSent).toEqual(['superseded'])
    // The second Identify has a new version, so receivers don't take it for a repeat of the first one.
    const [first, second] = log.delivered.map(({ identify }) => identify)
    expect(second?.messageId).not.toBe(first?.messageId)
    expect(await judge(owner, 0)).toMatchObject({ kind: 'superseded' })
    expect(await judge(owner, 1)).toMatchObject({ kind: 'send' })
  })

  test('and is told while the newer one is in flight is told the newer one again', async () => {
    const owner = await open()
    const { log } = owner
    change(log, { agoMs: 300 })
    await run(owner)
    change(log, { agoMs: 100 })
    await take(owner)
    foreign(log, { member: false, agoMs: 200 })
    owner.deliver(topics.states, 0)
    await turns()
    expect(told(log)).toEqual([isIn, isOut])
    await run(owner)
    expect(told(log)).toEqual([isIn, isOut, isIn])
    expect(await judge(owner, 1, true)).toEqual({ kind: 'send_current', traits: { lions: true } })
  })

  test('and is told while the newer one is in flight: whoever comes after a crash tells the newer one again', async () => {
    for (const isDiskLost of [false, true]) {
      const owner = await open()
      const { log } = owner
      change(log, { agoMs: 300 })
      await run(owner)
      change(log, { agoMs: 100 })
      await take(owner)
      foreign(log, { member: false, agoMs: 200 })
      owner.deliver(topics.states, 0)
      await turns()
      // The broker takes the newer value, and the value is stored. The broker doesn't get the note that this
      // value has to be sent again.
      owner.land(0)
      await turns()
      owner.deliver(topics.states, 0)
      await turns()
      expect(positionOf(log)).toBe(1)
      owner.kill(() => false)
      for (let unit = 0; unit < partitions; unit++) log.compact(unit)
      if (isDiskLost) log.disks.clear()
      await run(await open(log))
      expect(told(log)).toEqual([isIn, isOut, isIn])
    }
  })

  test('a silent version of it that comes after another value is told', async () => {
    const owner = await open()
    const { log } = owner
    change(log, { agoMs: 300 })
    await run(owner)
    const since = parseVersion(log.delivered[0]?.identify.since ?? '')
    change(log, { member: false, agoMs: 200 })
    await run(owner)
    foreign(log, { agoMs: 100, ...(since !== undefined && { since }) })
    await run(owner)
    expect(told(log)).toEqual([isIn, isOut, isIn])
  })

  test('a retry of it is sent the current value instead, as long as that was not told again', async () => {
    const owner = await open()
    const { log } = owner
    change(log, { agoMs: 300 })
    await run(owner)
    change(log, { agoMs: 100 })
    await take(owner)
    foreign(log, { member: false, agoMs: 200 })
    owner.deliver(topics.states, 0)
    await turns()
    owner.land(0)
    await turns()
    expect(await judge(owner, 1)).toEqual({ kind: 'send_current', traits: { lions: true } })
    expect(await judge(owner, 0)).toMatchObject({ kind: 'send' })
    await run(owner)
    expect(await judge(owner, 1)).toMatchObject({ kind: 'superseded' })
  })

  test('is superseded by what was told while it waited for its key to be put in order', async () => {
    const owner = await open()
    const { log } = owner
    change(log, { agoMs: 300 })
    await run(owner)
    foreign(log, { member: false, agoMs: 200 })
    change(log, { member: false, agoMs: 250 })
    await take(owner)
    owner.land(0)
    await turns()
    change(log, { agoMs: 100 })
    await take(owner)
    owner.land(0, { isAcknowledged: false })
    owner.deliver(topics.states, 0)
    await turns()
    await run(owner)
    expect(told(log).at(-1)).toBe(isIn)
    expect(await judge(owner, log.delivered.length - 1)).toMatchObject({ kind: 'send' })
  })
})

describe('a deletion that comes late', () => {
  test('leaves who was confirmed by a newer change, and tells it again, in either order', async () => {
    for (const isChangeFirst of [true, false]) {
      const owner = await open()
      const { log } = owner
      change(log, { agoMs: 1_000 })
      await run(owner)
      if (isChangeFirst) change(log, { agoMs: 200 })
      else remove(log, 500)
      await run(owner)
      if (isChangeFirst) remove(log, 500)
      else change(log, { agoMs: 200 })
      await run(owner)
      expect(isMember(log)).toBe(true)
      expect(told(log)).toEqual([isIn, isIn])
      expect(await judge(owner, 0)).toMatchObject({ kind: 'suppressed' })
      expect(await judge(owner, 0, true)).toEqual({ kind: 'send_current', traits: { lions: true } })
    }
  })

  test('leaves who was confirmed by a newer sync, and tells it again, in either order', async () => {
    for (const isSyncFirst of [true, false]) {
      const owner = await open()
      const { log } = owner
      change(log, { agoMs: 1_000 })
      await run(owner)
      if (isSyncFirst) sync(log, { userIds: [ann], agoMs: 200 })
      else remove(log, 500)
      await run(owner)
      if (isSyncFirst) remove(log, 500)
      else sync(log, { userIds: [ann], agoMs: 200 })
      await run(owner)
      expect(isMember(log)).toBe(true)
      expect(told(log)).toEqual([isIn, isIn])
      // A change that is older than the sync still has no effect on Ann.
      change(log, { member: false, agoMs: 300 })
      await run(owner)
      expect(isMember(log)).toBe(true)
    }
  })

  test('while a sync is compared buries nobody whom the sync confirms', async () => {
    const owner = await open()
    const { log } = owner
    change(log, { agoMs: 1_000 })
    await run(owner)
    sync(log, { userIds: [ann, bob], agoMs: 200 })
    remove(log, 500)
    await take(owner)
    owner.deliver(topics.deletions, 0)
    await run(owner)
    expect(isMember(log)).toBe(true)
    expect(told(log).filter((one) => one === isIn)).toHaveLength(2)
  })

  test('buries who was a member by a sync that is older', async () => {
    const owner = await open()
    const { log } = owner
    change(log, { agoMs: 1_000 })
    sync(log, { userIds: [ann], agoMs: 700 })
    await run(owner)
    remove(log, 500)
    await run(owner)
    expect(isMember(log)).toBeUndefined()
  })
})

describe('audiences that end or are renamed', () => {
  test('one that has ended leaves its property to another', async () => {
    const owner = await open()
    const { log } = owner
    change(log, { agoMs: 1_000 })
    await run(owner)
    sync(log, { userIds: [], agoMs: 500 })
    await run(owner)
    sync(log, { userIds: [ann, bob], agoMs: 100, audience: 'a2' })
    await run(owner)
    expect(reasons(log)).toEqual([])
    expect(told(log)).toEqual([isIn, isOut, isIn, `${bob} {"lions":true}`])
    // Both audiences have the same property. By this change, Ann would get it from the first audience,
    // although she already has it as a member of the second one.
    change(log, { agoMs: 50 })
    await run(owner)
    expect(reasons(log)).toEqual(['bad_property_name'])
  })

  test('a user who has left by a change, or since the last sync, is still the audience’s', async () => {
    const owner = await open()
    const { log } = owner
    sync(log, { userIds: [ann], agoMs: 1_000 })
    change(log, { member: false, agoMs: 500 })
    await run(owner)
    sync(log, { userIds: [ann], agoMs: 100, audience: 'a2' })
    await run(owner)
    expect(reasons(log)).toEqual(['bad_property_name'])
    expect(isMember(log)).toBe(false)
  })

  test.each([false, true])(
    'the property of a trait is not the audience’s of the same id (owner without a disk: %s)',
    async (isAnew) => {
      const first = await open()
      const { log } = first
      const trait = { type: 'trait', traitId: 'a1', traitName: 'Lions', userId: ann, value: 7 }
      send(log, { ...trait, changedAt: iso(log.nowMs - 1_000) })
      await run(first)
      const owner = isAnew ? await open(log, 2) : first
      sync(log, { userIds: [ann, bob], agoMs: 100 })
      await run(owner)
      expect(reasons(log)).toEqual(['bad_property_name'])
      expect(told(log)).toEqual([`${ann} {"lions":7}`])
    },
  )

  test('a sync under another name is refused while the old one has members', async () => {
    const owner = await open()
    const { log } = owner
    change(log, { agoMs: 1_000 })
    await run(owner)
    sync(log, { userIds: [], agoMs: 500, name: 'Big lions' })
    await run(owner)
    expect(reasons(log)).toEqual(['bad_property_name'])
    sync(log, { userIds: [bob], agoMs: 400, name: 'Big lions', key: 'lions' })
    await run(owner)
    expect(told(log).slice(1).sort()).toEqual([isOut, `${bob} {"lions":true}`].sort())
    sync(log, { userIds: [], agoMs: 300 })
    sync(log, { userIds: [ann], agoMs: 200, name: 'Big lions' })
    await run(owner)
    expect(reasons(log)).toHaveLength(1)
    expect(told(log).at(-1)).toBe(`${ann} {"big_lions":true}`)
  })
})
