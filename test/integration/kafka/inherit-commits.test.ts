import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTopic, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import { committedOffsets, type Member, startMember } from './member.ts'
import { inheritCommits } from '../../../src/kafka/other-groups/group-state.ts'

let topic = ''
let from = ''
let to = ''
const members: Member[] = []

beforeEach(async () => {
  const prefix = randomPrefix()
  topic = `${prefix}events`
  from = `${prefix}earlier`
  to = `${prefix}own`
  await createTopic(topic, { partitions: 3 })
})

afterEach(async () => {
  for (const { consumer } of members.splice(0)) await consumer.stop()
})

async function join(groupId: string, options: { settles?: (offset: number) => boolean } = {}) {
  const { settles = () => true } = options
  const member = await startMember({
    groupId,
    topics: [{ topic, waitMs: 0 }],
    onRecord: (record) => {
      if (settles(record.offset)) record.settle()
    },
  })
  members.push(member)
  return member
}

async function leave({ consumer }: Member): Promise<void> {
  consumer.quiesce()
  await consumer.commit()
  await consumer.stop()
  members.length = 0
}

function inherit() {
  return inheritCommits({ kafka: workerKafka(), from, to, topics: [topic], patienceMs: 1_000 })
}

test('a group goes on where another one stopped: nothing is read again, nothing is passed over', async () => {
  await produce(
    topic,
    [0, 1, 2, 3].map((n) => ({ partition: 0, value: `${n}` })),
  )
  const earlier = await join(from, { settles: (offset) => offset !== 1 })
  await until('it has them', () => earlier.received.length === 4)
  await leave(earlier)

  expect(await inherit()).toEqual({ kind: 'taken', partitions: 3 })
  await produce(topic, [{ partition: 0, value: 'new' }])
  const own = await join(to)
  await until('the new one came', () => own.received.some(({ text }) => text === 'new'))
  expect(own.received.map(({ text }) => text)).toEqual(['1', 'new'])
})

test('a group that has begun is not put back', async () => {
  await leave(await join(from))
  await inherit()
  const own = await join(to)
  await produce(topic, [{ partition: 0, value: 'a' }])
  await until('it came', () => own.received.length === 1)
  await own.consumer.commit()
  expect(await inherit()).toEqual({ kind: 'complete' })
  expect((await committedOffsets(to, [topic]))[`${topic}/0`]).toBe(1)
})

test('several that start at once make one copy, and all go on', async () => {
  await leave(await join(from))
  const kinds = (await Promise.all([inherit(), inherit(), inherit()])).map(({ kind }) => kind)
  expect(kinds).toContain('taken')
  expect(kinds.filter((kind) => kind !== 'taken' && kind !== 'complete')).toEqual([])
})

test('nothing is copied while somebody reads the topics in the other group, who is named', async () => {
  await join(from)
  expect(await inherit()).toMatchObject({ kind: 'inUse', members: [expect.stringContaining('sluice')] })
  expect(new Set(Object.values(await committedOffsets(to, [topic])))).toEqual(new Set([-1]))
})

test('members of the other group that read other topics keep nobody from going on', async () => {
  await leave(await join(from))
  const other = `${topic}-of-others`
  await createTopic(other)
  members.push(await startMember({ groupId: from, topics: [{ topic: other, waitMs: 0 }] }))
  expect(await inherit()).toEqual({ kind: 'taken', partitions: 3 })
})

test('a new installation has nothing to take over', async () => {
  expect(await inherit()).toEqual({ kind: 'complete' })
  expect(new Set(Object.values(await committedOffsets(to, [topic])))).toEqual(new Set([-1]))
})
