import type { Consumer, PartitionAssigners } from 'kafkajs'
import { expect, onTestFinished, test } from 'vitest'
import { readSubscription, writeAssignment, writeSubscription } from '../../../src/kafka/group/claim.ts'
import { createTopic, otherProgram, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { startMember } from './member.ts'
import type { TopicSubscription } from '../../../src/kafka/partitions/topic-subscription.ts'

type Topics = Record<'events' | 'changes' | 'retry', string>

/**
 * Starts a member that leads the group as earlier versions of Sluice did. It doesn't read the retry topic,
 * and owns unit 0. It gives unit 1 to the other member, and also all partitions of the retry topic.
 */
async function startEarlierLeader(groupId: string, { events, changes, retry }: Topics): Promise<Consumer> {
  const name = 'sluice-units'
  const topics = [events, changes]
  const claim = { units: [0], sinceMs: 0, busy: [], busyWithState: [] }
  const units: typeof PartitionAssigners.roundRobin = () => ({
    name,
    version: 2,
    protocol: () => ({ name, metadata: writeSubscription({ topics, claim }) }),
    assign: async ({ members }) =>
      members.map(({ memberId, memberMetadata }) => {
        const isOther = readSubscription(memberMetadata).topics.includes(retry)
        const given = new Map<string, number[]>(topics.map((topic) => [topic, [isOther ? 1 : 0]]))
        if (isOther) given.set(retry, [0, 1])
        return { memberId, memberAssignment: writeAssignment(given) }
      }),
  })
  const leader = otherProgram().consumer({ groupId, heartbeatInterval: 300, partitionAssigners: [units] })
  await leader.connect()
  await leader.subscribe({ topics, fromBeginning: true })
  const joined = Promise.withResolvers<void>()
  leader.on('consumer.group_join', () => joined.resolve())
  await leader.run({ eachMessage: async () => undefined })
  await joined.promise
  return leader
}

test('a member reads nothing of a unit that another member owns, though a leader of an earlier version gives it a topic of the unit', async () => {
  const prefix = randomPrefix()
  const topics = { events: `${prefix}events`, changes: `${prefix}changes`, retry: `${prefix}retry.1s` }
  for (const topic of Object.values(topics)) await createTopic(topic, { partitions: 2 })
  await produce(
    topics.retry,
    [0, 1].map((partition) => ({ partition, value: `of ${partition}` })),
  )
  const leader = await startEarlierLeader(`${prefix}group`, topics)
  const prepared: number[] = []
  const subscriptions: readonly TopicSubscription[] = [
    { topic: topics.events, waitMs: 0 },
    { topic: topics.changes, waitMs: 0, needsState: true },
    { topic: topics.retry, waitMs: 1_000, needsState: true },
  ]
  const member = await startMember({
    groupId: `${prefix}group`,
    topics: subscriptions.slice(),
    prepare: async (unit) => void prepared.push(unit),
  })
  onTestFinished(() => member.consumer.stop())
  await until('the retry of its unit has come', () => member.received.some(({ text }) => text === 'of 1'))
  expect(member.owned()).toEqual(
    Object.values(topics)
      .map((topic) => `${topic}/1`)
      .sort(),
  )
  expect(prepared).toEqual([1])
  await leader.disconnect()
  await until('the other retry has come', () => member.received.some(({ text }) => text === 'of 0'))
  // The unit was prepared after its former owner had left, so it has all that the former owner wrote.
  expect(prepared).toEqual([1, 0])
})
