import { expect, onTestFinished, test } from 'vitest'
import { createTopic, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { beginMember, committedOffsets, type Member } from './member.ts'
import type { TopicSubscription } from '../../../src/kafka/partitions/topic-subscription.ts'

/** A partition that the worker reads itself, and whose log has lost records in the place of the committed ones. */

type Topics = Record<'groupId' | 'events' | 'waiting', string>

/** Starts a member. `prepare` gets the member. */
async function start(
  { groupId, events, waiting }: Topics,
  prepare: (member: Member) => void,
): Promise<Member> {
  const begun = Promise.withResolvers<Member>()
  const topics: TopicSubscription[] = [
    { topic: events, waitMs: 0 },
    { topic: waiting, waitMs: 0, needsState: true, hasWindow: false, isPulled: true },
  ]
  const member = await beginMember({
    groupId,
    topics,
    prepare: async () => prepare(await begun.promise),
  })
  begun.resolve(member)
  await until('the member has joined', () => member.consumer.isJoined)
  return member
}

async function leave({ consumer }: Member): Promise<void> {
  consumer.quiesce()
  await consumer.commit()
  await consumer.stop()
}

test('a commit is lowered to the offset from which on the worker knows that the log is another one', async () => {
  const prefix = randomPrefix()
  const of = { groupId: `${prefix}group`, events: `${prefix}events`, waiting: `${prefix}waiting` }
  for (const topic of [of.events, of.waiting]) await createTopic(topic)
  await produce(
    of.waiting,
    Array.from({ length: 20 }, () => ({ value: 'a' })),
  )
  const committed = async () => (await committedOffsets(of.groupId, [of.waiting]))[`${of.waiting}/0`]
  const first = await start(of, () => undefined)
  first.consumer.pulled(of.waiting, 0)?.moveTo(15)
  await leave(first)
  expect(await committed()).toBe(15)
  const second = await start(of, ({ consumer }) => consumer.pulled(of.waiting, 0)?.isOtherFrom(5))
  onTestFinished(() => second.consumer.stop())
  expect(await committed()).toBe(5)
  second.consumer.pulled(of.waiting, 0)?.moveTo(12)
  await second.consumer.commit()
  expect(await committed()).toBe(12)
})
