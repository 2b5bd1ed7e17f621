import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Claim } from '../../../src/kafka/group/claim.ts'
import { Coordinator } from '../../../src/kafka/cluster/coordinator.ts'
import { describeGroup, leaveGroup } from '../../../src/kafka/wire/group-messages.ts'
import { GroupWatch } from '../../../src/kafka/group/group-watch.ts'
import { type Assigned, Membership } from '../../../src/kafka/group/membership.ts'
import { createTopic, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'

let prefix = ''
let groupId = ''
let topic = ''
const joined: Joined[] = []

beforeEach(async () => {
  prefix = randomPrefix()
  groupId = `${prefix}group`
  topic = `${prefix}events`
  await createTopic(topic)
})

afterEach(async () => {
  for (const member of joined.splice(0)) await member.leave()
})

/** A member, and everything that was reported to it. */
type Joined = {
  membership: Membership
  coordinator: Coordinator
  assignments: Assigned[]
  expelled: number
  fatal: Error[]
  said: { message: string; fields: object }[]
  /** Returns the partitions of the last assignment, by topic. */
  owned(): Record<string, readonly number[]>
  leave(): Promise<void>
}

type Options = {
  topics?: readonly string[]
  instanceId?: string
  leaveOnStop?: boolean
  sessionTimeoutMs?: number
}

function begin({
  topics = [topic],
  instanceId,
  leaveOnStop = false,
  sessionTimeoutMs = 60_000,
}: Options = {}): Joined {
  const kafka = workerKafka()
  const coordinator = new Coordinator(kafka, groupId, topic)
  const assignments: Assigned[] = []
  const said: Joined['said'] = []
  const say = (fields: object, message: string): void => void said.push({ message, fields })
  let claim: Omit<Claim, 'partitions'> = { units: [], sinceMs: 0, busy: [], busyWithState: [] }
  const membership = new Membership({
    kafka,
    groupId,
    instanceId,
    leaveOnStop,
    sessionTimeoutMs,
    topics,
    partitions: 6,
    coordinator,
    claim: () => claim,
    onAssigned(assigned) {
      assignments.push(assigned)
      claim = { ...claim, units: assigned.partitions.get(topics[0] ?? '') ?? [], sinceMs: Date.now() }
    },
    onExpelled() {
      member.expelled++
    },
    onSilent() {},
    onFatal: (error) => void member.fatal.push(error),
    log: { info: say, warn: say, error: say },
  })
  const member: Joined = {
    membership,
    coordinator,
    assignments,
    expelled: 0,
    fatal: [],
    said,
    owned: () =>
      Object.fromEntries([...(assignments.at(-1)?.partitions ?? [])].filter(([, { length }]) => length > 0)),
    async leave() {
      await membership.stop()
      coordinator.close()
    },
  }
  membership.start()
  joined.push(member)
  return member
}

async function join(options?: Options): Promise<Joined> {
  const member = begin(options)
  await until('it has joined', () => member.assignments.length > 0)
  return member
}

async function stop(member: Joined): Promise<void> {
  joined.splice(joined.indexOf(member), 1)
  await member.leave()
}

/** Ends a member without a leave request, like a process that was killed. */
function kill(member: Joined): void {
  joined.splice(joined.indexOf(member), 1)
  const { coordinator } = member
  coordinator.ask = () => new Promise(() => undefined)
  void member.membership.stop()
}

const all = [0, 1, 2, 3, 4, 5]

describe('members of a group', () => {
  test('share the units, move as few as can be, and go in good order', async () => {
    const retry = `${prefix}retry.1s`
    const one = await join({ topics: [topic, retry] })
    expect(one.owned()).toEqual({ [topic]: all, [retry]: all })
    const two = await join({ topics: [topic, retry] })
    await until('the first has joined again', () => one.assignments.length === 2)
    expect(one.owned()[topic]).toHaveLength(3)
    for (const member of [one, two]) expect(member.owned()[retry]).toEqual(member.owned()[topic])
    expect(new Set([...(one.owned()[topic] ?? []), ...(two.owned()[topic] ?? [])])).toEqual(new Set(all))
    const leftMs = Date.now()
    await stop(two)
    await until('the first has all', () => one.owned()[topic]?.length === 6)
    expect(Date.now() - leftMs).toBeLessThan(10_000)
    expect(one.assignments.map(({ isAnew }) => isAnew)).toEqual([true, false, false])
  })

  test('are given those topics only that they subscribe to, and only of units that they own', async () => {
    const [second, minute] = [`${prefix}retry.1s`, `${prefix}retry.1m`]
    const one = await join({ topics: [topic, second] })
    const two = await join({ topics: [topic, minute] })
    await until('the first has joined again', () => one.assignments.length === 2)
    expect(one.owned()[topic]).toHaveLength(3)
    expect(two.owned()[topic]).toHaveLength(3)
    expect(one.owned()[second]).toEqual(one.owned()[topic])
    expect(two.owned()[minute]).toEqual(two.owned()[topic])
    expect(one.owned()[minute]).toBeUndefined()
  })

  test('of two installations keep to their own topics, and it is said', async () => {
    const other = `${prefix}other.events`
    const ours = await join()
    const theirs = await join({ topics: [other] })
    await until('ours has joined again', () => ours.assignments.length === 2)
    expect(ours.owned()).toEqual({ [topic]: all })
    expect(theirs.owned()).toEqual({ [other]: all })
    const said: object[] = []
    const watch = new GroupWatch({
      coordinator: ours.coordinator,
      groupId,
      topics: [topic],
      ownMemberId: () => ours.membership.identity?.memberId,
      isFormerProcess: undefined,
      settleMs: 0,
      log: { info() {}, warn() {}, error: (fields, message) => void said.push({ ...fields, message }) },
    })
    watch.joined()
    await until('it is said', () => said.length > 0)
    watch.stop()
    const message =
      'workers of another installation are in this consumer group: give each installation its own kafka.groupId; until then each change of one delays the partitions of the other'
    expect(said).toEqual([{ groupId, topics: [other], message }])
    expect(watch.foreign).toEqual([other])
  })
})

const failedToLeave = expect.objectContaining({ message: expect.stringMatching(/^leaving the group failed/) })

describe('a static member', () => {
  test('that is stopped and started again moves nothing, and nobody joins for it', async () => {
    const one = await join({ instanceId: 'pod-0' })
    const two = await join({ instanceId: 'pod-1' })
    await until('the first has joined again', () => one.assignments.length === 2)
    const owned = two.owned()
    const generationId = two.membership.identity?.generationId
    await stop(two)
    const again = await join({ instanceId: 'pod-1' })
    expect(again.owned()).toEqual(owned)
    expect(again.membership.identity?.generationId).toBe(generationId)
    // After one more heartbeat, both members would know of a rebalance.
    const atMs = performance.now()
    await until('a heartbeat is answered', () => performance.now() - one.membership.heardAgoMs > atMs)
    expect(one.assignments).toHaveLength(2)
    expect(again.assignments).toHaveLength(1)
  })

  test('that leaves when it stops gives its units to the others at once', async () => {
    const one = await join({ instanceId: 'pod-0', leaveOnStop: true })
    const two = await join({ instanceId: 'pod-1', leaveOnStop: true })
    await until('the first has joined again', () => one.assignments.length === 2)
    await stop(two)
    // The session lasts for a minute, so the first member didn't wait for its end.
    await until('the first has them all', () => one.owned()[topic]?.length === all.length)
    expect(two.said).not.toContainEqual(failedToLeave)
  })

  test('that leaves when it stops, and whose instance id another one has by then, ends without a word', async () => {
    const one = await join({ instanceId: 'pod-0', leaveOnStop: true })
    const two = await join({ instanceId: 'pod-0', leaveOnStop: true })
    await until('the first is told', () => one.fatal.length > 0)
    await stop(one)
    expect(one.said).not.toContainEqual(failedToLeave)
    expect(two.owned()).toEqual({ [topic]: all })
  })

  test('that leads the group moves nothing either when it is killed and started again', async () => {
    const one = await join({ instanceId: 'pod-0' })
    const two = await join({ instanceId: 'pod-1' })
    await until('the first has joined again', () => one.assignments.length === 2)
    const owned = one.owned()
    kill(one)
    const again = await join({ instanceId: 'pod-0' })
    expect(again.owned()).toEqual(owned)
    // The restarted member leads the next rebalance.
    await join({ instanceId: 'pod-2' })
    await until('all have two', () => [again, two].every((member) => member.owned()[topic]?.length === 2))
  })

  test('that comes back with other topics gets those', async () => {
    const retry = `${prefix}retry.1s`
    const one = await join({ instanceId: 'pod-0' })
    expect(one.owned()).toEqual({ [topic]: all })
    await stop(one)
    const again = await join({ instanceId: 'pod-0', topics: [topic, retry] })
    expect(again.owned()).toEqual({ [topic]: all })
    again.membership.joinAgain()
    await until('it has both', () => again.assignments.length === 2)
    expect(again.owned()).toEqual({ [topic]: all, [retry]: all })
  })

  test('whose instance id another living one has is told, and ends', async () => {
    const one = await join({ instanceId: 'pod-0' })
    const two = await join({ instanceId: 'pod-0' })
    await until('the first is told', () => one.fatal.length > 0)
    expect(one.fatal.map(({ message }) => message)).toEqual([
      expect.stringMatching(/another living worker .* kafka\.instanceId/),
    ])
    expect(two.fatal).toEqual([])
    expect(two.owned()).toEqual({ [topic]: all })
  })
})

test('a member that the group does not know any more is told so, and joins anew', async () => {
  const member = await join()
  const before = member.membership.identity
  await member.coordinator.ask(
    leaveGroup(groupId, { memberId: before?.memberId ?? '', instanceId: undefined }),
  )
  await until('it has joined anew', () => member.assignments.length === 2)
  expect(member.expelled).toBe(1)
  expect(member.assignments.at(-1)?.isAnew).toBe(true)
  expect(member.membership.identity?.memberId).not.toBe(before?.memberId)
})

test('a member that can not reach the coordinator says so, and stays in the group', async () => {
  const member = await join()
  const before = member.membership.identity
  Object.assign(member.coordinator, { ask: () => Promise.reject(new Error('the connection was closed')) })
  const line = 'the group coordinator could not be reached, trying again'
  await until('it is told', () => member.said.some(({ message }) => message === line))
  Reflect.deleteProperty(member.coordinator, 'ask')
  const { members } = await member.coordinator.ask(describeGroup(groupId))
  expect(members).toHaveLength(1)
  expect(member.membership.identity).toBe(before)
})

test('a member that was killed is out of the group a session later, and commits go on meanwhile', async () => {
  const one = await join({ sessionTimeoutMs: 6_000 })
  const two = await join({ sessionTimeoutMs: 6_000 })
  await until('the first has joined again', () => one.assignments.length === 2)
  kill(two)
  const three = begin({ sessionTimeoutMs: 6_000 })
  await until('a join is under way', () => one.membership.isJoining)
  const { state } = await one.coordinator.ask(describeGroup(groupId))
  expect(state).toBe('PreparingRebalance')
  expect(one.membership.isMember).toBe(true)
  await until('it is over', () => three.assignments.length === 1 && one.owned()[topic]?.length === 3)
  expect(one.expelled).toBe(0)
})
