import { afterEach, beforeEach, expect, test } from 'vitest'
import { readCommits, inheritCommits } from '../../../src/kafka/other-groups/group-state.ts'
import { withAdmin } from '../../../src/kafka/cluster/with-admin.ts'
import { createTopic, otherProgram, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import { writeCommit } from '../../support/write-commit.ts'
import { committedOffsets, type Member, startMember } from './member.ts'

/** The one record that the first member leaves unsettled. Its commit has this offset. */
const unsettled = 20
const records = 30

let topic = ''
let groupId = ''
const members: Member[] = []
const warnings: { fields: object; message: string }[] = []
const log = {
  debug() {},
  info() {},
  error() {},
  warn: (fields: object, message: string) => void warnings.push({ fields, message }),
}

beforeEach(async () => {
  const prefix = randomPrefix()
  topic = `${prefix}events`
  groupId = `${prefix}group`
  warnings.length = 0
  await createTopic(topic, { partitions: 2 })
})

afterEach(async () => {
  for (const { consumer } of members.splice(0)) await consumer.stop()
})

async function join(group: string, settles: (offset: number) => boolean = () => true): Promise<Member> {
  const member = await startMember({
    groupId: group,
    topics: [{ topic, waitMs: 0 }],
    onRecord: (record) => {
      if (settles(record.offset)) record.settle()
    },
    log,
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

function fill(partition: number, count: number): Promise<void> {
  return produce(
    topic,
    Array.from({ length: count }, (_, n) => ({ partition, value: `${n}` })),
  )
}

/** Settles all records of partition 0 but one, and stops. */
async function settleAllButOne(): Promise<void> {
  await fill(0, records)
  const first = await join(groupId, (offset) => offset !== unsettled)
  await until('it has them', () => first.received.length === records)
  await leave(first)
  expect((await committedOffsets(groupId, [topic]))[`${topic}/0`]).toBe(unsettled)
}

/** Does what a script does that keeps the metadata: reads the commit of partition 0, and writes it elsewhere. */
async function writeBack(to: { offset: number; partition?: number; group?: string }): Promise<void> {
  const commits = await withAdmin(otherProgram(), (admin) => readCommits(admin, groupId, [topic]))
  const metadata = commits.find(({ partition }) => partition === 0)?.metadata ?? null
  const { offset, partition = 0, group = groupId } = to
  await writeCommit({ groupId: group, topic, partition, offset, metadata })
}

/** Returns the offsets that a member has received from a partition, once it has the last record. */
async function offsetsOf(member: Member, partition: number, last: number): Promise<number[]> {
  const offsets = (): number[] =>
    member.received.filter((record) => record.partition === partition).map(({ offset }) => offset)
  await until('the last record came', () => offsets().includes(last))
  return offsets()
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, n) => from + n)
}

function moves(): (object | undefined)[] {
  return warnings.filter(({ message }) => message.startsWith('somebody has')).map(({ fields }) => fields)
}

test('a commit that was lowered with its metadata is gone on from: all records from there come, and it is told once', async () => {
  await settleAllButOne()
  await writeBack({ offset: unsettled - 5 })
  const next = await join(groupId)
  expect(await offsetsOf(next, 0, records - 1)).toEqual(numbers(unsettled - 5, records))
  expect(moves()).toEqual([{ topic, partition: 0, from: unsettled, to: unsettled - 5 }])
  expect(warnings.map(({ message }) => message).join()).toContain(
    `moved the commit of this partition from offset ${unsettled} to ${unsettled - 5}`,
  )
  await leave(next)
  await fill(0, 1)
  expect(await offsetsOf(await join(groupId), 0, records)).toEqual([records])
  expect(moves()).toHaveLength(1)
})

test('a commit that was raised with its metadata is gone on from: all records from there come, new ones too', async () => {
  await settleAllButOne()
  await writeBack({ offset: unsettled + 5 })
  await fill(0, 10)
  const next = await join(groupId)
  expect(await offsetsOf(next, 0, records + 9)).toEqual(numbers(unsettled + 5, records + 10))
  expect(moves()).toEqual([{ topic, partition: 0, from: unsettled, to: unsettled + 5 }])
})

test('the metadata of another partition is not believed, even at the same offset', async () => {
  await settleAllButOne()
  await fill(1, records)
  await writeBack({ offset: unsettled, partition: 1 })
  const next = await join(groupId)
  expect(await offsetsOf(next, 1, records - 1)).toEqual(numbers(unsettled, records))
  // Nobody has touched partition 0, so its settled records don't come again.
  expect(await offsetsOf(next, 0, unsettled)).toEqual([unsettled])
  expect(moves()).toEqual([{ topic, partition: 1, from: -1, to: unsettled }])
})

test('the metadata of another group is not believed, and a group that inherits commits believes its own', async () => {
  await settleAllButOne()
  const copied = `${groupId}-copied`
  await writeBack({ offset: unsettled, group: copied })
  const copy = await join(copied)
  expect(await offsetsOf(copy, 0, records - 1)).toEqual(numbers(unsettled, records))
  expect(moves()).toEqual([{ topic, partition: 0, from: -1, to: unsettled }])
  await leave(copy)

  const heir = `${groupId}-heir`
  await inheritCommits({ kafka: workerKafka(), from: groupId, to: heir, topics: [topic] })
  await fill(0, 1)
  expect(await offsetsOf(await join(heir), 0, records)).toEqual([unsettled, records])
  expect(moves()).toHaveLength(1)
})

test('a moved commit that is inherited by another group is not believed there either', async () => {
  await settleAllButOne()
  await writeBack({ offset: unsettled - 5 })
  const heir = `${groupId}-heir`
  await inheritCommits({ kafka: workerKafka(), from: groupId, to: heir, topics: [topic] })
  expect(await offsetsOf(await join(heir), 0, records - 1)).toEqual(numbers(unsettled - 5, records))
  expect(moves()).toHaveLength(1)
})
