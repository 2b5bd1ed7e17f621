import { afterEach, beforeEach, expect, test } from 'vitest'
import { Commits } from '../../../src/kafka/partitions/commits.ts'
import { Coordinator } from '../../../src/kafka/cluster/coordinator.ts'
import { Partition } from '../../../src/kafka/partitions/partition.ts'
import { describeGroup } from '../../../src/kafka/wire/group-messages.ts'
import { memoryOf } from '../../../src/kafka/wire/stored-commit.ts'
import { createTopic, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import { committedOffsets } from './member.ts'

/** The identity in a commit for a group without members. */
const nobody = { memberId: '', generationId: -1, instanceId: undefined }

let topic = ''
let groupId = ''
let coordinator: Coordinator
const errors: object[] = []

beforeEach(async () => {
  const prefix = randomPrefix()
  topic = `${prefix}events`
  groupId = `${prefix}group`
  await createTopic(topic)
  coordinator = new Coordinator(workerKafka(), groupId, topic)
  await until('the group has a coordinator', () =>
    coordinator.ask(describeGroup(groupId)).then(
      () => true,
      () => false,
    ),
  )
})

afterEach(() => {
  coordinator.close()
  errors.length = 0
})

function open(): Commits {
  return new Commits({
    coordinator,
    groupId,
    log: { warn() {}, error: (fields) => void errors.push(fields) },
  })
}

/** The broker's default limit on the bytes of one batch. It stores each commit request as one batch. */
const largestBatchBytes = 1_048_588

/** Returns a partition whose position is offset 1. Record 1 isn't settled, and all other records are. */
function begun(of: string, id: number, records = 10): Partition {
  const partition = new Partition(of, id, 0)
  partition.begin({ offset: 0, metadata: null })
  for (let offset = 0; offset < records; offset++) partition.take(offset)
  for (let offset = 0; offset < records; offset++) if (offset !== 1) partition.settle(offset)
  return partition
}

const newsOf = (partitions: readonly Partition[]) =>
  partitions.map((partition) => ({ partition, standing: partition.standing(false) }))

test('more than a broker takes in one request is committed, and read again', async () => {
  const large = `${topic}.large`
  await createTopic(large, { partitions: 600 })
  const settled = 20_000
  const partitions = Array.from({ length: 600 }, (_, id) => begun(large, id, settled))
  expect(await open().write(newsOf(partitions), nobody)).toEqual(new Set())
  expect(newsOf(partitions).filter(({ partition, standing }) => partition.isNews(standing))).toEqual([])
  const stored = await open().read(partitions)
  expect(new Set(stored.map(({ offset }) => offset))).toEqual(new Set([1]))
  expect(new Set(stored.map((one) => memoryOf(one)?.settledAbove.length))).toEqual(new Set([settled - 2]))
  const characters = stored.reduce((sum, { metadata }) => sum + (metadata?.length ?? 0), 0)
  expect(characters).toBeGreaterThan(largestBatchBytes)
})

test('a partition of a topic that is gone is refused by itself, and said once', async () => {
  const there = begun(topic, 0)
  const gone = begun(`${topic}.gone`, 0)
  const commits = open()
  expect(await commits.write(newsOf([gone, there]), nobody)).toEqual(new Set([gone]))
  await commits.write(newsOf([gone, there]), nobody)
  expect(errors).toEqual([{ topic: gone.topic, partition: 0, error: 'UNKNOWN_TOPIC_OR_PARTITION' }])
  expect(await committedOffsets(groupId, [topic])).toEqual({ [`${topic}/0`]: 1 })
})

test('nothing is committed for a member that the group does not know', async () => {
  const partition = begun(topic, 0)
  const stranger = { memberId: 'stranger', generationId: 3, instanceId: undefined }
  await expect(open().write(newsOf([partition]), stranger)).rejects.toMatchObject({
    type: 'ILLEGAL_GENERATION',
  })
  expect(partition.isNews(partition.standing(false))).toBe(true)
})
