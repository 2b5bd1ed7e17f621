import { afterEach, expect, test } from 'vitest'
import type { AudiencePorts } from '../../../src/audience/audience-ports.ts'
import type { StateStore, Stores } from '../../../src/audience/store/store.ts'
import { Partition } from '../../../src/kafka/partitions/partition.ts'
import { createIntake } from '../../../src/schema-registry/decoding-intake.ts'
import { until } from '../../support/until.ts'
import { MemoryStores } from './memory-stores.ts'
import { iso, SimulatedLog, SimulatedOwner, topics, turns, usersOf } from './simulated-log.ts'

/** Tests of how long a sync waits for its last parts. */

const [ann = ''] = usersOf(0, 1)
const timeoutMs = 600_000
const owners: SimulatedOwner[] = []

afterEach(() => {
  for (const owner of owners.splice(0)) owner.kill(() => false)
})

async function open(log: SimulatedLog, endSeenMs: () => number, ports: Partial<AudiencePorts> = {}) {
  let times = 0
  const owner = new SimulatedOwner(log, {
    ports: {
      ...ports,
      endSeenMs() {
        times++
        return endSeenMs()
      },
    },
  })
  owners.push(owner)
  await owner.begin()
  /**
   * Waits until the unit has checked, after this call, whether the sync is late. Also resolves when the sync
   * has become dead letters, because then there is nothing to check.
   */
  async function looked(): Promise<void> {
    const before = times
    await until('it was looked at twice', () => times > before + 1 || log.dead.length > 0, { everyMs: 2 })
  }
  return { owner, looked }
}

/**
 * Appends the first of two parts, or the part that `other` describes. `timestampMs` is the time by the
 * broker's clock.
 */
function sendPart(
  log: SimulatedLog,
  timestampMs: number,
  other: { part?: number; parts?: number } = {},
): void {
  const value = {
    type: 'sync',
    audienceId: 'a1',
    audienceName: 'Lions',
    syncId: 's1',
    snapshotAt: iso(timestampMs),
    part: 1,
    parts: 2,
    userIds: [ann],
    ...other,
  }
  log.append(topics.changes, 0, {
    value: Buffer.from(JSON.stringify(value)),
    headers: { 'source-id': 'space' },
    timestampMs,
  })
}

test('a sync is not refused early where our clock is ahead of the broker’s', async () => {
  const log = new SimulatedLog()
  const { owner, looked } = await open(log, () => log.nowMs)
  sendPart(log, log.nowMs - 2 * timeoutMs)
  owner.deliver(topics.changes, 0)
  await turns()
  await looked()
  log.nowMs += timeoutMs
  await looked()
  expect(log.dead).toEqual([])
  log.nowMs += 1
  await until('it is refused', () => log.dead.length > 0)
  expect(log.dead).toMatchObject([{ reason: 'sync_incomplete' }])
})

test('a sync waits as long as always where our clock is set meanwhile', async () => {
  const log = new SimulatedLog()
  let setByMs = 0
  let seenMs = 0
  const now = (): number => log.nowMs + setByMs
  const { owner, looked } = await open(log, () => seenMs, { now })
  sendPart(log, log.nowMs)
  owner.deliver(topics.changes, 0)
  await turns()
  setByMs = 2 * timeoutMs
  seenMs = now()
  await looked()
  expect(log.dead).toEqual([])
  // The end was seen at a time of the old clock. By the new clock, this time is in the future.
  setByMs = -2 * timeoutMs
  log.nowMs += 2 * timeoutMs
  await looked()
  expect(log.dead).toEqual([])
  seenMs = now()
  await until('it is refused', () => log.dead.length > 0)
  expect(log.dead).toMatchObject([{ reason: 'sync_incomplete' }])
})

test('a sync is not refused because the broker’s clock was ahead for a while before it', async () => {
  const log = new SimulatedLog()
  const { owner } = await open(log, () => 0)
  const change = { type: 'membership', audienceId: 'a2', audienceName: 'Tigers', userId: ann, member: true }
  log.append(topics.changes, 0, {
    key: Buffer.from(ann),
    value: Buffer.from(JSON.stringify({ ...change, changedAt: iso(log.nowMs) })),
    headers: { 'source-id': 'space' },
    timestampMs: log.nowMs + 2 * timeoutMs,
  })
  for (const part of [1, 2]) sendPart(log, log.nowMs, { part })
  owner.deliver(topics.changes, 0)
  await owner.landAll()
  await until('it has ended', () => owner.synced.length > 0 || log.dead.length > 0)
  expect(log.dead).toEqual([])
})

test('a sync waits for a part that is here and needs a schema, however long the registry is down', async () => {
  const log = new SimulatedLog()
  const partition = new Partition(topics.changes, 0, 0, { needsState: true, hasWindow: false })
  partition.begin({ offset: 0, metadata: null })
  partition.begun()
  const answer = Promise.withResolvers<void>()
  let isUp = false
  const passed: string[] = []
  const intake = createIntake<{ topic: string; partition: number; isAbandoned: boolean; giveBack(): void }>({
    topics: new Set([topics.changes]),
    decode: () => (isUp ? { ok: true, value: Buffer.from('{}') } : answer.promise),
    lookAhead: () => undefined,
    next: (_, { value }) => passed.push(String(value)),
    refuse: () => undefined,
    setPartitionFull: (_topic, _id, isFull) => partition.setFull('schema', isFull),
  })
  const { owner, looked } = await open(log, () => partition.endSeenMs)
  sendPart(log, log.nowMs)
  owner.deliver(topics.changes, 0)
  await turns()
  partition.take(0)
  partition.take(1)
  partition.endsAt(2, log.nowMs)
  const second = { topic: topics.changes, partition: 0, isAbandoned: false, giveBack: () => undefined }
  intake.accept(second, { key: null, value: Buffer.from([0, 0, 0, 0, 9]) })
  log.nowMs += 2 * timeoutMs
  partition.endsAt(2, log.nowMs)
  await looked()
  expect(log.dead).toEqual([])
  isUp = true
  answer.resolve()
  await until('the second has passed', () => passed.length > 0)
  expect(partition.endSeenMs).toBe(log.nowMs)
})

test('a stop while it is written that a sync is refused leaves no part behind', async () => {
  const log = new SimulatedLog()
  const memory = new MemoryStores(log.disks)
  let stopped: Promise<void> | undefined
  const stores: Stores = {
    open: async (location) => {
      const opened = await memory.open(location)
      if (!opened.ok) return opened
      const { store } = opened
      const write: StateStore['write'] = async (operations) => {
        const isRefusal = operations.some((one) => one.type === 'put' && one.value === 'sync_inconsistent')
        if (isRefusal) stopped ??= owner.units.stop()
        await store.write(operations)
      }
      return {
        ok: true,
        store: {
          getMany: (keys) => store.getMany(keys),
          getBytes: (key) => store.getBytes(key),
          range: (range) => store.range(range),
          compact: (range) => store.compact(range),
          close: () => store.close(),
          write,
        },
      }
    },
    remove: (location) => memory.remove(location),
    removeUnused: () => memory.removeUnused(),
  }
  const owner = new SimulatedOwner(log, { onDisk: 'disk', stores })
  owners.push(owner)
  await owner.begin()
  sendPart(log, log.nowMs, { part: 1, parts: 3 })
  sendPart(log, log.nowMs, { part: 2, parts: 3 })
  sendPart(log, log.nowMs, { part: 3, parts: 4 })
  owner.deliver(topics.changes, 0)
  await until('it is refused', () => stopped !== undefined)
  await stopped
  expect([...owner.out]).toEqual([])
  expect(owner.givenBack).toHaveLength(3)
})
