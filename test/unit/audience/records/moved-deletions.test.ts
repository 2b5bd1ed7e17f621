import { afterEach, expect, test } from 'vitest'
import { encodeDeletionFloor, encodeStateKey } from '../../../../src/audience/records/state-record.ts'
import { iso, partitions, SimulatedLog, SimulatedOwner, topics, usersOf } from '../simulated-log.ts'

const [ann = ''] = usersOf(0, 1)
const owners: SimulatedOwner[] = []

afterEach(() => {
  for (const owner of owners.splice(0)) owner.kill(() => false)
})

async function open(): Promise<{ log: SimulatedLog; owner: SimulatedOwner }> {
  const log = new SimulatedLog()
  const owner = new SimulatedOwner(log)
  owners.push(owner)
  await owner.begin()
  return { log, owner }
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

/** Appends a deletion request of Ann, the same request each time. */
function remove(log: SimulatedLog, partition: number): void {
  const value = { requestId: 'r1', userId: ann, sources: ['space'], requestedAt: iso(log.nowMs) }
  log.append(topics.deletions, partition, { value: json(value) })
}

async function run(owner: SimulatedOwner): Promise<void> {
  for (let round = 0; round < 3; round++) {
    for (const topic of Object.values(topics))
      for (let unit = 0; unit < partitions; unit++) owner.deliver(topic, unit)
    await owner.landAll()
  }
  expect(owner.faults).toEqual([])
}

test('a request in the wrong partition is moved to the unit of the user: nothing older is sent after its delete', async () => {
  const { log, owner } = await open()
  const value = {
    type: 'membership',
    audienceId: 'a1',
    audienceName: 'Lions',
    userId: ann,
    member: true,
    changedAt: iso(log.nowMs - 10),
  }
  log.append(topics.changes, 0, { value: json(value), headers: { 'source-id': 'space' } })
  owner.deliver(topics.changes, 0)
  await owner.landAll()
  remove(log, 1)
  owner.deliver(topics.deletions, 1)
  await owner.landAll()
  expect(log.records(topics.deletions, 0)).toMatchObject([
    { key: Buffer.from(ann), headers: { origin: 'deletions/1/0' } },
  ])
  owner.deliver(topics.deletions, 0)
  await owner.landAll()
  expect(log.deletes).toHaveLength(1)
  // The group reads the older value only now, after the delete.
  await run(owner)
  expect(log.delivered).toEqual([])
  expect(owner.out.size).toBe(0)
})

test('a request that was moved is told of though the unit that it was in has written its floors, and once more where it is moved twice', async () => {
  const { log, owner } = await open()
  const stateKey = { kind: 'deletion', userId: ann, sourceId: 'space' } as const
  const floor = { requestedAtMs: log.nowMs, requestId: 'r1', partition: 1, offset: 0 }
  log.append(topics.states, 0, { key: encodeStateKey(stateKey), value: encodeDeletionFloor(floor) })
  owner.deliver(topics.states, 0)
  await owner.landAll()
  remove(log, 1)
  await run(owner)
  expect(log.deletes).toHaveLength(1)
  log.append(topics.deletions, 0, { ...log.records(topics.deletions, 0)[0] })
  await run(owner)
  expect(new Set(log.deletes.flatMap(({ messageIds }) => messageIds)).size).toBe(1)
  remove(log, 0)
  await run(owner)
  expect(log.deletes).toHaveLength(2)
})
