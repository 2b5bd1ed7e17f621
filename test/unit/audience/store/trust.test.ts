import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isMemberText } from '../../../../src/audience/store/entry.ts'
import {
  encodeDeletionFloor,
  encodeState,
  encodeStateKey,
} from '../../../../src/audience/records/state-record.ts'
import { levelStores, type StateStore, type Stores } from '../../../../src/audience/store/store.ts'
import {
  knownPropertyKey,
  metaKey,
  propertyPrefix,
  rangeOf,
} from '../../../../src/audience/store/store-keys.ts'
import { until } from '../../../support/until.ts'
import { iso, partitions, SimulatedLog, SimulatedOwner, topics, usersOf } from '../simulated-log.ts'
import type { PropertyStateKey } from '../../../../src/audience/records/version.ts'

/** Tests of how far a store on disk may be trusted, whatever happened to the programs that used it. */

const [ann = '', bob = '', cid = '', dan = ''] = usersOf(0, 4)
const owners: SimulatedOwner[] = []
let folder = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-trust-'))
})

afterEach(async () => {
  for (const owner of owners.splice(0)) await owner.units.stop().catch(() => undefined)
  await rm(folder, { recursive: true, force: true })
})

async function open(log: SimulatedLog, stores?: Stores): Promise<SimulatedOwner> {
  const owner = new SimulatedOwner(log, { onDisk: folder, ...(stores !== undefined && { stores }) })
  owners.push(owner)
  await owner.begin()
  return owner
}

function change(log: SimulatedLog, user: string, agoMs = 0): void {
  const audience = { type: 'membership', audienceId: 'a1', audienceName: 'Lions' }
  send(log, { ...audience, userId: user, member: true, changedAt: iso(log.nowMs - agoMs) })
}

function send(log: SimulatedLog, value: object): void {
  log.append(topics.changes, 0, {
    value: Buffer.from(JSON.stringify(value)),
    headers: { 'source-id': 'space' },
  })
}

/** Changes the store of the first unit to the form in which earlier builds wrote the property of a trait. */
async function putBack(): Promise<void> {
  const opened = await levelStores.open(join(folder, 'unit-0'))
  if (!opened.ok) throw new Error(`the store is ${opened.why}`, { cause: opened.cause })
  const property = { spaceId: 'space', property: 'lions' }
  const [meta = '{}'] = await opened.store.getMany([metaKey])
  await opened.store.write([
    { type: 'put', key: metaKey, value: JSON.stringify({ ...JSON.parse(meta), format: 1 }) },
    { type: 'del', key: knownPropertyKey(property, { kind: 'trait', id: 'a1' }) },
    { type: 'put', key: knownPropertyKey(property, { kind: 'audience', id: 'a1' }), value: '' },
  ])
  await opened.store.close()
}

/** Hands over all records, and acknowledges all writes, until every record is settled or given back. */
async function run(owner: SimulatedOwner): Promise<void> {
  await until('all is done', () => {
    for (const topic of Object.values(topics)) {
      for (let unit = 0; unit < partitions; unit++) owner.deliver(topic, unit)
    }
    while (owner.pending.length > 0) owner.land(0)
    return owner.out.size === 0
  })
}

function stateKeyOf(userId: string): PropertyStateKey {
  return { kind: 'property', userId, spaceId: 'space', property: 'lions' }
}

/** Appends a state by which another owner makes the user a member. */
function writeState(log: SimulatedLog, user: string, atMs: number): void {
  const version = { atMs, isNative: true, partition: 0, offset: 0 }
  const state = { kind: 'audience', id: 'a1', name: 'Lions', value: 'true', version, since: version } as const
  log.append(topics.states, 0, { key: encodeStateKey(stateKeyOf(user)), value: encodeState(state, false) })
}

/**
 * Reads the store of the first unit after it is closed. Returns its position and the users who are members.
 */
async function onDisk(): Promise<{ position: unknown; members: string[] }> {
  const opened = await levelStores.open(join(folder, 'unit-0'))
  if (!opened.ok) throw new Error(`the store is ${opened.why}`, { cause: opened.cause })
  const [meta = '{}'] = await opened.store.getMany([metaKey])
  const prefix = propertyPrefix('space', 'lions')
  const reader = opened.store.range(rangeOf(prefix))
  const states = await reader.next(100)
  await reader.close()
  await opened.store.close()
  const { position }: { position?: unknown } = JSON.parse(meta)
  const members = states.filter(([, text]) => isMemberText(text)).map(([key]) => key.slice(prefix.length))
  return { position, members }
}

/** Returns stores on disk that note in which units the properties of a space are looked for. */
function noting(looked: string[]): Stores {
  return {
    ...levelStores,
    async open(location) {
      const opened = await levelStores.open(location)
      if (!opened.ok) return opened
      const { store } = opened
      const watched: StateStore = {
        getMany: (keys) => store.getMany(keys),
        getBytes: (key) => store.getBytes(key),
        write: (operations) => store.write(operations),
        compact: (range) => store.compact(range),
        close: () => store.close(),
        range(range) {
          if (range.from.startsWith('p')) looked.push(basename(location))
          return store.range(range)
        },
      }
      return { ok: true, store: watched }
    },
  }
}

/** Returns stores on disk that refuse the first write of a state, as a full disk does. */
function failingOnce(): Stores {
  let isToFail = true
  const failing = (store: StateStore): StateStore => ({
    getMany: (keys) => store.getMany(keys),
    getBytes: (key) => store.getBytes(key),
    range: (range) => store.range(range),
    compact: (range) => store.compact(range),
    close: () => store.close(),
    async write(operations) {
      if (isToFail && operations.some(({ key }) => key.startsWith('s'))) {
        isToFail = false
        throw new Error('no space left on device')
      }
      await store.write(operations)
    },
  })
  return {
    ...levelStores,
    async open(location) {
      const opened = await levelStores.open(location)
      return opened.ok ? { ok: true, store: failing(opened.store) } : opened
    },
  }
}

describe('a store', () => {
  test('that has refused a write is not written to any more, and says no more than it has', async () => {
    const log = new SimulatedLog()
    const owner = await open(log, failingOnce())
    change(log, ann)
    owner.deliver(topics.changes, 0)
    await until('it is told that state can not be kept', () => {
      while (owner.pending.length > 0) owner.land(0)
      return owner.faults.length > 0
    })
    change(log, bob)
    await run(owner)
    await owner.units.stop()
    expect(await onDisk()).toEqual({ position: 0, members: [] })
    const next = await open(log)
    await next.units.stop()
    expect(await onDisk()).toEqual({ position: 2, members: [ann, bob].toSorted() })
  })

  test.each([
    ['went to another owner', (owner: SimulatedOwner) => (owner.isZombie = true)],
    ['is closed', () => undefined],
  ])(
    'is not past states that were given back since the unit %s, whatever is behind them',
    async (_, leave) => {
      const log = new SimulatedLog()
      const owner = await open(log)
      writeState(log, ann, log.nowMs)
      log.append(topics.states, 0, { key: Buffer.from('x'), value: Buffer.from('y') })
      owner.deliver(topics.states, 0)
      leave(owner)
      owner.units.letGoAbandoned()
      await owner.units.stop()
      expect(owner.givenBack).toEqual(['memberships/0/0'])
      expect(await onDisk()).toEqual({ position: 0, members: [] })
    },
  )

  test('of a log that was deleted is not trusted with one that was made anew in its place', async () => {
    const log = new SimulatedLog()
    const owner = await open(log)
    change(log, ann)
    change(log, bob)
    await run(owner)
    await owner.units.stop()
    expect(await onDisk()).toEqual({ position: 2, members: [ann, bob].toSorted() })
    const anew = new SimulatedLog()
    anew.nowMs = log.nowMs + 1_000
    for (const user of [cid, dan, cid]) writeState(anew, user, anew.nowMs)
    const next = await open(anew)
    expect(next.restored[0]).toMatchObject({
      records: 3,
      mistrust: 'its log was truncated or recreated',
    })
    await next.units.stop()
    expect(await onDisk()).toEqual({ position: 3, members: [cid, dan].toSorted() })
  })

  test.each([
    ['it was closed', async (owner: SimulatedOwner) => owner.units.stop()],
    [
      'it was restored, and then closed',
      async (owner: SimulatedOwner, log: SimulatedLog) => {
        await owner.units.stop()
        await (await open(log)).units.stop()
      },
    ],
  ])(
    'of a log that lost records after %s, and has grown past its position, is not trusted',
    async (_, end) => {
      const log = new SimulatedLog()
      const owner = await open(log)
      change(log, ann)
      change(log, bob)
      await run(owner)
      await end(owner, log)
      expect(await onDisk()).toEqual({ position: 2, members: [ann, bob].toSorted() })
      log.electUnclean(0, 1)
      for (const user of [cid, dan]) writeState(log, user, log.nowMs)
      const next = await open(log)
      expect(next.restored[0]).toMatchObject({ records: 3, mistrust: 'its log was truncated or recreated' })
      await next.units.stop()
      expect(await onDisk()).toEqual({ position: 3, members: [ann, cid, dan].toSorted() })
    },
  )

  test('of a log with a new leader that has lost nothing is trusted', async () => {
    const log = new SimulatedLog()
    const owner = await open(log)
    change(log, ann)
    await run(owner)
    log.electUnclean(0, 1)
    change(log, bob)
    await run(owner)
    await owner.units.stop()
    log.electUnclean(0, 2)
    writeState(log, cid, log.nowMs)
    const next = await open(log)
    expect(next.restored[0]).toMatchObject({ records: 1, mistrust: undefined })
    await next.units.stop()
    expect(await onDisk()).toEqual({ position: 3, members: [ann, bob, cid].toSorted() })
  })

  test('of an earlier build, which kept the properties of traits and audiences in one form, is not trusted', async () => {
    const log = new SimulatedLog()
    const trait = { type: 'trait', traitId: 'a1', traitName: 'Lions', userId: ann, value: 7 }
    send(log, { ...trait, changedAt: iso(log.nowMs - 1_000) })
    const owner = await open(log)
    await run(owner)
    await owner.units.stop()
    await putBack()
    const sync = { type: 'sync', audienceId: 'a1', audienceName: 'Lions', syncId: 's1', part: 1, parts: 1 }
    send(log, { ...sync, userIds: [ann, bob], snapshotAt: iso(log.nowMs - 100) })
    await run(await open(log))
    expect(log.dead.map(({ reason }) => reason)).toEqual(['bad_property_name'])
  })

  test('of a time to come is not trusted: nobody can tell how old it is', async () => {
    const log = new SimulatedLog()
    const owner = await open(log)
    change(log, ann)
    await run(owner)
    await owner.units.stop()
    log.nowMs -= 60_000
    const soon = await open(log)
    expect(soon.restored[0]).toMatchObject({ records: 0, mistrust: undefined })
    await soon.units.stop()
    log.nowMs -= 3_600_000
    const next = await open(log)
    expect(next.restored[0]).toMatchObject({ records: 1, mistrust: 'its checkpoint is in the future' })
  })
})

describe('a restore', () => {
  test('keeps what stands behind a tombstone whose floor was compacted away', async () => {
    const log = new SimulatedLog()
    // Ann was deleted twice, the second time after the tombstone was written. Of the two floors, compaction
    // has left the last one.
    log.append(topics.states, 0, { key: encodeStateKey(stateKeyOf(ann)) })
    log.append(topics.states, 0, {
      key: encodeStateKey({ kind: 'deletion', userId: ann, sourceId: 'space' }),
      value: encodeDeletionFloor({
        requestedAtMs: log.nowMs - 500,
        requestId: 'r2',
        partition: 0,
        offset: 1,
      }),
    })
    writeState(log, ann, log.nowMs - 100)
    const owner = await open(log)
    await owner.units.stop()
    expect(await onDisk()).toEqual({ position: 3, members: [ann] })
  })

  test('ends what stands before a tombstone whose floor was compacted away', async () => {
    const log = new SimulatedLog()
    writeState(log, ann, log.nowMs - 100)
    writeState(log, bob, log.nowMs - 100)
    log.append(topics.states, 0, { key: encodeStateKey(stateKeyOf(ann)) })
    const owner = await open(log)
    await owner.units.stop()
    expect(await onDisk()).toEqual({ position: 3, members: [bob] })
  })
})

test('a deletion is looked into by the unit alone that can hold the user', async () => {
  const log = new SimulatedLog()
  const looked: string[] = []
  const owner = await open(log, noting(looked))
  change(log, ann, 10)
  await run(owner)
  const request = { requestId: 'r1', userId: ann, sources: ['space', 'web'], requestedAt: iso(log.nowMs) }
  log.append(topics.deletions, 0, { value: Buffer.from(JSON.stringify(request)) })
  await run(owner)
  expect(new Set(looked)).toEqual(new Set(['unit-0']))
  await owner.units.stop()
  expect((await onDisk()).members).toEqual([])
})

describe('spare stores', () => {
  test('that killed programs have left are removed, and those that are in use are not', async () => {
    for (const name of ['unit-0.4711', 'unit-1.9d2f']) {
      const left = await levelStores.open(join(folder, name))
      if (!left.ok) throw new Error('it can not be opened')
      await left.store.write([{ type: 'put', key: 'a', value: '1' }])
      await left.store.close()
    }
    const used = await levelStores.open(join(folder, 'unit-1.used'))
    if (!used.ok) throw new Error('it can not be opened')
    await open(new SimulatedLog())
    const names = await readdir(folder)
    await used.store.close()
    expect(names.toSorted()).toEqual(['unit-0', 'unit-1', 'unit-1.used'])
  })
})
