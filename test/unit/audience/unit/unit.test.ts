import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { decodeState, encodeState, encodeStateKey } from '../../../../src/audience/records/state-record.ts'
import { metaKey } from '../../../../src/audience/store/store-keys.ts'
import { until } from '../../../support/until.ts'
import { ann, change, part, remove } from '../producers.ts'
import { partitions, SimulatedLog, SimulatedOwner, topics, turns, usersOf } from '../simulated-log.ts'

const [, bob = '', cid = ''] = usersOf(0, 3)
const [zoe = ''] = usersOf(1, 1)
const owners: SimulatedOwner[] = []

afterEach(() => {
  for (const owner of owners.splice(0)) owner.kill(() => false)
})

async function open(
  log = new SimulatedLog(),
  machine = 1,
  begunBelow?: ReadonlyMap<string, number>,
): Promise<{ log: SimulatedLog; owner: SimulatedOwner }> {
  const owner = new SimulatedOwner(log, { machine, ...(begunBelow !== undefined && { begunBelow }) })
  owners.push(owner)
  await owner.begin()
  return { log, owner }
}

async function run(owner: SimulatedOwner): Promise<void> {
  for (let round = 0; round < 3; round++) {
    for (const topic of Object.values(topics)) {
      for (let unit = 0; unit < partitions; unit++) owner.deliver(topic, unit)
    }
    await owner.landAll()
  }
  expect(owner.faults).toEqual([])
}

const told = (log: SimulatedLog): string[] =>
  log.delivered.map(
    ({ identify }) => `${identify.userId} ${JSON.stringify(JSON.parse(identify.body.toString()).traits)}`,
  )

describe('changes', () => {
  test('a property that another audience has of the user is refused', async () => {
    const { log, owner } = await open()
    change(log)
    change(log, { audience: 'a2' })
    change(log, { audience: 'a2', user: bob })
    await run(owner)
    expect(log.dead.map(({ reason }) => reason)).toEqual(['bad_property_name'])
    expect(told(log)).toEqual([`${ann} {"lions":true}`, `${bob} {"lions":true}`])
  })

  test('a change without a space that is on is refused, or counted', async () => {
    const { log, owner } = await open()
    for (const source of ['', 'nobody', 'website', 'off']) change(log, { source })
    await run(owner)
    expect(log.dead.map(({ reason }) => reason)).toEqual(['no_source', 'unknown_source', 'unknown_source'])
    expect(owner.outcomes.get('space_disabled')).toBe(1)
    expect(owner.out.size).toBe(0)
  })

  test('one that comes with a tombstone is not too late for what the store still has', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    log.append(topics.states, 0, { key: log.records(topics.states, 0)[0]?.key ?? null })
    change(log, { agoMs: 20, member: false })
    owner.deliver(topics.states, 0)
    owner.deliver(topics.changes, 0)
    await run(owner)
    expect(owner.outcomes.get('changed')).toBe(2)
    expect(told(log).at(-1)).toBe(`${ann} {"lions":false}`)
  })

  test('one in the wrong partition is moved to its unit with its origin', async () => {
    const { log, owner } = await open()
    change(log, { user: zoe, partition: 0 })
    await run(owner)
    expect(log.records(topics.changes, 1)).toMatchObject([
      { headers: { 'source-id': 'space', origin: 'audience-changes/0/0' }, key: Buffer.from(zoe) },
    ])
    expect(told(log)).toEqual([`${zoe} {"lions":true}`])
  })

  test('a newer change with the same value is written silently, and not sent', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 1_000 })
    await run(owner)
    change(log)
    await run(owner)
    expect(told(log)).toHaveLength(1)
    expect(owner.outcomes).toEqual(
      new Map([
        ['changed', 1],
        ['confirmed', 1],
      ]),
    )
  })

  test('of changes that wait for a write only the newest is written', async () => {
    const { log, owner } = await open()
    for (const [index, member] of [true, false, true, false].entries())
      change(log, { member, agoMs: 100 - index })
    owner.deliver(topics.changes, 0)
    await turns()
    expect(owner.pending).toHaveLength(1)
    await run(owner)
    expect(log.records(topics.states, 0)).toHaveLength(2)
    expect(told(log).at(-1)).toBe(`${ann} {"lions":false}`)
  })

  test('nothing is settled before its write is acknowledged', async () => {
    const { log, owner } = await open()
    change(log)
    owner.deliver(topics.changes, 0)
    await turns()
    expect(log.commit(topics.changes, 0)).toBe(0)
    owner.land(0, { isAcknowledged: false })
    await turns()
    expect(log.commit(topics.changes, 0)).toBe(0)
    await run(owner)
    expect(log.commit(topics.changes, 0)).toBe(1)
  })

  test('a unit that has much to do stops the fetching of its partition, and starts it again', async () => {
    const { log, owner } = await open()
    for (let count = 0; count < 5_000; count++) change(log, { user: ann, agoMs: count })
    owner.deliver(topics.changes, 0)
    expect(owner.full.get('audience-changes/0')).toBe(true)
    await run(owner)
    expect(owner.full.get('audience-changes/0')).toBe(false)
  })
})

describe('syncs', () => {
  test('who is in no part has left, unless a change says more lately', async () => {
    const { log, owner } = await open()
    change(log, { user: ann, agoMs: 2_000 })
    change(log, { user: bob, agoMs: 500 })
    await run(owner)
    part(log, { syncId: 's1', userIds: [cid], agoMs: 1_000 })
    await run(owner)
    expect(told(log).sort()).toEqual(
      [
        `${ann} {"lions":false}`,
        `${ann} {"lions":true}`,
        `${bob} {"lions":true}`,
        `${cid} {"lions":true}`,
      ].sort(),
    )
  })

  test('an empty sync ends an audience', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    part(log, { syncId: 's1', userIds: [] })
    await run(owner)
    expect(told(log)).toEqual([`${ann} {"lions":true}`, `${ann} {"lions":false}`])
  })

  test('an older sync that is completed after a newer one does no harm', async () => {
    const { log, owner } = await open()
    change(log, { user: ann, agoMs: 10_000 })
    part(log, { syncId: 'old', userIds: [bob], part: 1, parts: 2, agoMs: 5_000 })
    part(log, { syncId: 'new', userIds: [ann], agoMs: 1_000 })
    part(log, { syncId: 'old', userIds: [], part: 2, parts: 2, agoMs: 5_000 })
    await run(owner)
    expect(told(log)).toEqual([`${ann} {"lions":true}`])
    expect(log.dead.map(({ reason }) => reason)).toEqual(['sync_outdated', 'sync_outdated'])
  })

  test('a change that is older than the last sync is dropped, for users without a record too', async () => {
    const { log, owner } = await open()
    part(log, { syncId: 's1', userIds: [ann] })
    change(log, { user: bob, agoMs: 1_000 })
    change(log, { user: ann, member: false, agoMs: 1_000 })
    await run(owner)
    expect(told(log)).toEqual([`${ann} {"lions":true}`])
    expect(owner.outcomes.get('outdated')).toBe(2)
  })

  test('users of another partition refuse the whole sync, whatever part they are in', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 1_000 })
    part(log, { syncId: 's1', userIds: [bob], part: 1, parts: 2 })
    part(log, { syncId: 's1', userIds: [zoe], part: 2, parts: 2 })
    await run(owner)
    expect(log.dead.map(({ reason }) => reason)).toEqual(['sync_wrong_partition', 'sync_wrong_partition'])
    expect(JSON.parse(log.dead[0]?.value?.toString() ?? '')).toMatchObject({ part: 1, userIds: [bob] })
    expect(told(log)).toEqual([`${ann} {"lions":true}`])
    part(log, { syncId: 's1', userIds: [bob], part: 1, parts: 2 })
    await run(owner)
    expect(log.dead).toHaveLength(3)
  })

  test('parts that are missing after ten minutes of append times refuse the sync', async () => {
    const { log, owner } = await open()
    part(log, { syncId: 's1', userIds: [ann], part: 1, parts: 2 })
    log.nowMs += 600_001
    part(log, { syncId: 's1', userIds: [], part: 2, parts: 2, agoMs: 600_001 })
    await run(owner)
    expect(log.dead.map(({ reason }) => reason)).toEqual(['sync_incomplete', 'sync_incomplete'])
    expect(told(log)).toEqual([])
  })

  test('by the clock a sync is refused only where the log is known to have ended', async () => {
    const { log, owner } = await open()
    part(log, { syncId: 's1', userIds: [ann], part: 1, parts: 2 })
    await run(owner)
    log.nowMs += 3_600_000
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(log.dead).toEqual([])
    owner.endSeenMs = log.nowMs
    await until('the sync is refused', () => log.dead.length === 1)
  })

  test('a part that comes twice counts once, and one that differs refuses the sync', async () => {
    const { log, owner } = await open()
    for (let time = 0; time < 2; time++) part(log, { syncId: 's1', userIds: [ann], part: 1, parts: 2 })
    part(log, { syncId: 's1', userIds: [], part: 2, parts: 2 })
    part(log, { syncId: 's2', userIds: [ann], part: 1, parts: 2 })
    part(log, { syncId: 's2', userIds: [bob], part: 1, parts: 2 })
    await run(owner)
    expect(owner.synced).toMatchObject([{ syncId: 's1', joined: 1 }])
    expect(log.dead.map(({ reason }) => reason)).toEqual(['sync_inconsistent', 'sync_inconsistent'])
    expect(owner.out.size).toBe(0)
  })

  test('a sync of users whose property another audience has is refused whole', async () => {
    const { log, owner } = await open()
    change(log, { user: ann, audience: 'a2' })
    part(log, { syncId: 's1', userIds: [ann, bob] })
    await run(owner)
    expect(log.dead.map(({ reason }) => reason)).toEqual(['bad_property_name'])
    expect(told(log)).toEqual([`${ann} {"lions":true}`])
  })

  test('parts of an applied sync that come again are settled', async () => {
    const { log, owner } = await open()
    part(log, { syncId: 's1', userIds: [ann] })
    await run(owner)
    log.append(topics.changes, 0, { ...log.records(topics.changes, 0)[0] })
    await run(owner)
    expect([owner.out.size, log.dead.length, owner.synced.length]).toEqual([0, 0, 1])
  })
})

function lastState(log: SimulatedLog) {
  const last = log.records(topics.states, 0).at(-1)
  return decodeState(last?.key ?? null, last?.value ?? null)
}

/** Returns the position up to which the store of the first unit is complete, as the store itself says. */
function positionOf(log: SimulatedLog): unknown {
  const meta: { position?: unknown } = JSON.parse(
    log.disks.get('machine-1/unit-0')?.get(metaKey)?.toString() ?? '{}',
  )
  return meta.position
}

describe('the state', () => {
  test('an older version that another owner writes late is written over', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    const [first] = log.records(topics.states, 0)
    change(log, { member: false })
    await run(owner)
    if (first !== undefined) log.append(topics.states, 0, first)
    await run(owner)
    const last = log.records(topics.states, 0).at(-1)
    const decoded = decodeState(last?.key ?? null, last?.value ?? null)
    expect(decoded).toMatchObject({ ok: true, record: { state: { value: 'false' }, isSilent: true } })
    expect(told(log).at(-1)).toBe(`${ann} {"lions":false}`)
    expect(owner.out.size).toBe(0)
  })

  test('a newer version that another owner writes is taken over and sent', async () => {
    const { log, owner } = await open()
    const stateKey = { kind: 'property', userId: ann, spaceId: 'space', property: 'lions' } as const
    const version = { atMs: log.nowMs, isNative: true, partition: 0, offset: 9 }
    const state = {
      kind: 'audience',
      id: 'a1',
      name: 'Lions',
      value: 'true',
      version,
      since: version,
    } as const
    log.append(topics.states, 0, { key: encodeStateKey(stateKey), value: encodeState(state, false) })
    await run(owner)
    change(log, { agoMs: 5 })
    await run(owner)
    expect(told(log)).toEqual([`${ann} {"lions":true}`])
    expect(owner.outcomes.get('outdated')).toBe(1)
  })

  test('an older version that lands between a write and its acknowledgement is written over', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    const [first] = log.records(topics.states, 0)
    change(log, { member: false })
    owner.deliver(topics.changes, 0)
    await turns()
    owner.land(0, { isAcknowledged: false })
    if (first !== undefined) log.append(topics.states, 0, first)
    owner.deliver(topics.states, 0)
    await turns()
    await run(owner)
    expect(lastState(log)).toMatchObject({ ok: true, record: { state: { value: 'false' }, isSilent: true } })
    expect(owner.out.size).toBe(0)
  })

  test('a restore keeps the best of a key, not the last, and the best is written again', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    const [first] = log.records(topics.states, 0)
    change(log, { member: false, agoMs: 5 })
    await run(owner)
    if (first !== undefined) log.append(topics.states, 0, first)
    owner.kill(() => false)
    const next = (await open(log, 2)).owner
    change(log, { member: false, agoMs: 7 })
    next.deliver(topics.changes, 0)
    await next.landAll()
    expect(next.outcomes.get('outdated')).toBe(1)
    expect(lastState(log)).toMatchObject({ ok: true, record: { state: { value: 'false' }, isSilent: true } })
  })

  test('a store says no more than it has: it waits at a record on account of which something is to be written', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    const [first] = log.records(topics.states, 0)
    change(log, { member: false })
    await run(owner)
    expect(positionOf(log)).toBe(2)
    if (first !== undefined) log.append(topics.states, 0, first)
    change(log, { user: bob })
    owner.deliver(topics.states, 0)
    await turns()
    owner.deliver(topics.changes, 0)
    await turns()
    // Only the write of Bob's state lands.
    owner.land(owner.pending.length - 1)
    await turns()
    expect(positionOf(log)).toBe(2)
    await run(owner)
    await owner.units.stop()
    expect(positionOf(log)).toBe(log.records(topics.states, 0).length)
  })

  test('what is no state is refused, and the rest goes on', async () => {
    const { log, owner } = await open()
    log.append(topics.states, 0, { key: Buffer.from('x'), value: Buffer.from('y') })
    change(log)
    await run(owner)
    expect(log.dead.map(({ reason }) => reason)).toEqual(['bad_state'])
    expect(told(log)).toHaveLength(1)
  })

  test('a store is found again after a clean stop, and made anew where it can not be trusted', async () => {
    const { log, owner } = await open()
    change(log)
    await run(owner)
    await owner.units.stop()
    const again = (await open(log)).owner
    expect(again.restored[0]).toMatchObject({ records: 0, mistrust: undefined })
    await again.units.stop()
    log.nowMs += 31 * 86_400_000
    const late = (await open(log)).owner
    expect(late.restored[0]).toMatchObject({ records: 1, mistrust: 'it is too old' })
    await late.units.stop()
    log.records(topics.states, 0).length = 0
    const mistrust = 'its log was truncated or recreated'
    expect((await open(log)).owner.restored[0]).toMatchObject({ records: 0, mistrust })
  })
})

const judged = (log: SimulatedLog, index: number, isUncertain = false) => {
  const identify = log.delivered[index]?.identify
  if (identify === undefined) throw new Error('it was not delivered')
  const { userId, spaceId, property, since, body } = identify
  return {
    unit: 0,
    sourceId: spaceId,
    firstSeenMs: log.nowMs,
    property: { userId, spaceId, property, since },
    body,
    isUncertain,
  }
}

describe('judging what waited', () => {
  test('a value that is the last is sent, an older one is dropped, or replaced where it may still land', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    expect(await owner.units.judge(judged(log, 0))).toEqual({ kind: 'send' })
    change(log, { member: false, agoMs: 5 })
    await run(owner)
    expect(await owner.units.judge(judged(log, 0))).toEqual({ kind: 'superseded' })
    expect(await owner.units.judge(judged(log, 1))).toEqual({ kind: 'send' })
    const current = log.delivered[1]?.identify
    expect(await owner.units.judge(judged(log, 0, true))).toEqual({
      kind: 'send_current',
      messageId: current?.messageId,
      body: current?.body,
      since: current?.since,
    })
  })

  test('a silent version supersedes nothing', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    change(log)
    await run(owner)
    expect(await owner.units.judge(judged(log, 0))).toEqual({ kind: 'send' })
  })
})

const waiting = (type: string, userId: string, firstSeenMs: number) => ({
  unit: 1,
  sourceId: 'web',
  firstSeenMs,
  body: Buffer.from(JSON.stringify({ type, userId })),
  isUncertain: false,
})

describe('deletions', () => {
  test('the state goes, every unit knows, and the sources are told', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    expect(owner.units.mayBeDeleted(0, ann, 'space')).toBe(false)
    remove(log)
    await run(owner)
    expect(owner.units.mayBeDeleted(0, ann, 'space')).toBe(true)
    expect(owner.units.mayBeDeleted(0, bob, 'space')).toBe(false)
    expect(log.deletes).toMatchObject([{ userId: ann, sources: ['space', 'web'] }])
    expect(new Set(log.deletes[0]?.messageIds).size).toBe(2)
    expect(log.records(topics.states, 0).filter(({ value }) => value === null)).toHaveLength(1)
    expect(log.records(topics.states, 1)).toHaveLength(2)
    expect(await owner.units.judge(waiting('track', ann, log.nowMs - 1))).toEqual({ kind: 'suppressed' })
    expect(await owner.units.judge(waiting('track', ann, log.nowMs + 1))).toEqual({ kind: 'send' })
    expect(await owner.units.judge(waiting('track', bob, log.nowMs - 1))).toEqual({ kind: 'send' })
    expect(await owner.units.judge(waiting('delete', ann, log.nowMs - 1))).toEqual({ kind: 'send' })
    expect(owner.out.size).toBe(0)
  })

  test('what was changed before the request is dropped, what was changed after it is sent anew', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    remove(log, { agoMs: 5 })
    await run(owner)
    change(log, { agoMs: 7, member: false })
    change(log, { agoMs: 1 })
    await run(owner)
    expect(owner.outcomes.get('deleted')).toBe(1)
    expect(told(log)).toEqual([`${ann} {"lions":true}`, `${ann} {"lions":true}`])
  })

  test('an older value that may still land late is followed by what holds since the request: a newer value, or the delete', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    const older = judged(log, 0)
    const uncertain = judged(log, 0, true)
    remove(log, { agoMs: 5 })
    await run(owner)
    expect(await owner.units.judge(older)).toEqual({ kind: 'suppressed' })
    const deleted = await owner.units.judge(uncertain)
    // The messageId is that of the delete for the space. The destinations of the space got the same one from
    // the request itself.
    expect(deleted).toMatchObject({
      kind: 'send_current',
      messageId: log.deletes[0]?.messageIds[log.deletes[0].sources.indexOf('space')],
      since: older.property.since,
    })
    change(log, { agoMs: 1 })
    await run(owner)
    const newer = log.delivered[1]?.identify
    expect(await owner.units.judge(older)).toEqual({ kind: 'suppressed' })
    expect(await owner.units.judge(uncertain)).toEqual({
      kind: 'send_current',
      messageId: newer?.messageId,
      body: newer?.body,
      since: newer?.since,
    })
  })

  test('a value that was confirmed after the request is told again, since the delete takes it away', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    change(log, { agoMs: 3 })
    await run(owner)
    expect(told(log)).toEqual([`${ann} {"lions":true}`])
    remove(log, { agoMs: 5 })
    await run(owner)
    expect(told(log)).toEqual([`${ann} {"lions":true}`, `${ann} {"lions":true}`])
    expect(await owner.units.judge(judged(log, 1))).toEqual({ kind: 'send' })
    expect(owner.out.size).toBe(0)
  })

  test('the same request again is the same request', async () => {
    const { log, owner } = await open()
    remove(log)
    remove(log)
    await run(owner)
    expect(log.deletes).toHaveLength(1)
    expect(owner.out.size).toBe(0)
  })

  test('a crash between the floors and the tombstones leaves nothing behind', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    remove(log)
    owner.deliver(topics.deletions, 0)
    for (let floors = 0; floors < 4; floors++) {
      await turns()
      owner.land(0)
    }
    owner.kill(() => false)
    const next = (await open(log)).owner
    await run(next)
    expect(log.records(topics.states, 0).filter(({ value }) => value === null).length).toBeGreaterThan(0)
    expect(log.deletes).toHaveLength(1)
    log.nowMs += 1
    change(log)
    await run(next)
    expect(told(log)).toHaveLength(2)
  })

  test('a sync from before the request does not bring the user back', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10_000 })
    remove(log, { agoMs: 1_000 })
    await run(owner)
    part(log, { syncId: 's1', userIds: [ann, bob], agoMs: 2_000 })
    await run(owner)
    expect(told(log).at(-1)).toBe(`${bob} {"lions":true}`)
    part(log, { syncId: 's2', userIds: [ann, bob], agoMs: 500 })
    await run(owner)
    expect(told(log).at(-1)).toBe(`${ann} {"lions":true}`)
  })

  test.each([true, false])(
    'a value from before that an owner may have sent, %j, and left without a word, has to be followed by the delete',
    async (mayHaveBegun) => {
      const { log, owner } = await open()
      change(log, { agoMs: 10 })
      owner.deliver(topics.changes, 0)
      await owner.landAll()
      remove(log)
      owner.deliver(topics.deletions, 0)
      await owner.landAll()
      owner.kill(() => false)
      const states = mayHaveBegun ? log.records(topics.states, 0).length : 0
      const next = (await open(log, 1, new Map([[`${topics.states}/0`, states]]))).owner
      await run(next)
      expect(log.delivered.map(({ identify }) => identify.isSuperseded)).toEqual(mayHaveBegun ? [true] : [])
      expect(next.out.size).toBe(0)
    },
  )

  test('a state that another owner writes late is buried again', async () => {
    const { log, owner } = await open()
    change(log, { agoMs: 10 })
    await run(owner)
    const [first] = log.records(topics.states, 0)
    remove(log)
    await run(owner)
    if (first !== undefined) log.append(topics.states, 0, first)
    await run(owner)
    expect(log.records(topics.states, 0).at(-1)?.value).toBeNull()
    expect(told(log)).toHaveLength(1)
    expect(owner.notSent).toContain('suppressed')
  })
})

test('a unit whose store is in the hands of an owner that stands still gets one of its own, which ends with it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-units-'))
  try {
    const log = new SimulatedLog()
    const still = new SimulatedOwner(log, { onDisk: folder })
    await still.begin()
    change(log)
    still.deliver(topics.changes, 0)
    // The test has to wait for the disk, and a few turns of the event loop may be too short for that.
    await until('the state is written', () => still.pending.length > 0)
    await still.landAll()
    const next = new SimulatedOwner(log, { onDisk: folder })
    await next.begin()
    expect(next.restored).toMatchObject([
      { unit: 0, records: 1, mistrust: 'another process has it open' },
      { unit: 1, records: 0, mistrust: 'another process has it open' },
    ])
    await next.units.stop()
    await still.units.stop()
    expect((await readdir(folder)).toSorted()).toEqual(['unit-0', 'unit-1'])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
