import { expect, test } from 'vitest'
import { Overwritten } from '../../../../src/audience/store/overwritten.ts'
import type { StateStore, Stores } from '../../../../src/audience/store/store.ts'
import { MemoryStores } from '../memory-stores.ts'
import { iso, SimulatedLog, SimulatedOwner, topics, turns, usersOf } from '../simulated-log.ts'

/** Tests of states for which a unit doesn't need to search its store. */

/**
 * Returns stores that add the keys of all searched states to `looked`. Each search waits until `mayRead` has
 * resolved.
 */
function noting(log: SimulatedLog, looked: string[], mayRead = async (): Promise<void> => undefined): Stores {
  const memory = new MemoryStores(log.disks)
  const watched = (store: StateStore): StateStore => ({
    async getMany(keys) {
      looked.push(...keys.filter((key) => key.startsWith('s')))
      await mayRead()
      return store.getMany(keys)
    },
    getBytes: (key) => store.getBytes(key),
    write: (operations) => store.write(operations),
    range: (range) => store.range(range),
    compact: (range) => store.compact(range),
    close: () => store.close(),
  })
  return {
    async open(location) {
      const opened = await memory.open(location)
      return opened.ok ? { ok: true, store: watched(opened.store) } : opened
    },
    remove: (location) => memory.remove(location),
    removeUnused: () => memory.removeUnused(),
  }
}

const [ann = '', bob = ''] = usersOf(0, 2)

/** Appends a change by which a user enters an audience, or leaves it. */
function append(log: SimulatedLog, userId: string, member: boolean, atMs: number): void {
  const value = { type: 'membership', audienceId: 'a1', audienceName: 'Lions', userId, member }
  log.append(topics.changes, 0, {
    value: Buffer.from(JSON.stringify({ ...value, changedAt: iso(atMs) })),
    headers: { 'source-id': 'space' },
  })
}

test('a state that was written here, and is the only one of its key, is not looked for when its record is read', async () => {
  const log = new SimulatedLog()
  const looked: string[] = []
  const owner = new SimulatedOwner(log, { onDisk: 'disk', stores: noting(log, looked) })
  await owner.begin()
  const decide = async (): Promise<void> => {
    owner.deliver(topics.changes, 0)
    await owner.landAll()
  }
  append(log, ann, true, log.nowMs - 20)
  append(log, bob, true, log.nowMs - 20)
  await decide()
  append(log, bob, false, log.nowMs - 10)
  await decide()
  looked.splice(0)
  owner.deliver(topics.states, 0)
  await owner.landAll()
  expect(looked.filter((key) => key.endsWith(ann))).toEqual([])
  expect(looked.filter((key) => key.endsWith(bob))).toHaveLength(2)
  const told = log.delivered.map(({ identify }) => [identify.userId, identify.isSuperseded])
  expect(told.filter(([, isSuperseded]) => isSuperseded === false)).toEqual([
    [ann, false],
    [bob, false],
  ])
  await owner.units.stop()
})

test('a state that was the only one of its key, and no longer is when its record is decided on, is superseded', async () => {
  const log = new SimulatedLog()
  let mayRead = Promise.resolve()
  const owner = new SimulatedOwner(log, { onDisk: 'disk', stores: noting(log, [], () => mayRead) })
  await owner.begin()
  const decide = async (): Promise<void> => {
    owner.deliver(topics.changes, 0)
    await turns()
  }
  append(log, ann, true, log.nowMs - 30)
  append(log, bob, true, log.nowMs - 30)
  await decide()
  await owner.landAll()
  append(log, bob, false, log.nowMs - 20)
  await decide()
  await owner.landAll()
  // Ann leaves. The write of her state isn't acknowledged yet.
  append(log, ann, false, log.nowMs - 10)
  await decide()
  expect(owner.pending).toHaveLength(1)
  // Bob's states have to be looked for. During this search, the write of Ann's state is acknowledged.
  const { promise, resolve } = Promise.withResolvers<void>()
  mayRead = promise
  owner.deliver(topics.states, 0)
  await turns()
  owner.land(0)
  await turns()
  resolve()
  await owner.landAll()
  owner.deliver(topics.states, 0)
  await owner.landAll()
  const told = log.delivered.filter(({ identify }) => identify.userId === ann)
  expect(told.map(({ offset, identify }) => [offset, identify.isSuperseded])).toEqual([[3, false]])
  await owner.units.stop()
})

test('however many keys are overwritten, one that was is never taken for one that was not', () => {
  const overwritten = new Overwritten(10)
  expect(overwritten.mayHold('before', 9)).toBe(true)
  expect(overwritten.mayHold('first', 10)).toBe(false)
  const count = 200_000
  for (let offset = 10; offset < 10 + count; offset++) {
    const key = `k${offset % 1_000}`
    overwritten.keep(key, offset, offset < 1_010)
    if (offset >= 1_010) expect(overwritten.mayHold(key, offset)).toBe(true)
  }
  for (let number = 0; number < 1_000; number++) {
    expect(overwritten.mayHold(`k${number}`, 10 + number), 'an older record').toBe(true)
  }
  expect(overwritten.mayHold('new', 10 + count)).toBe(false)
})
