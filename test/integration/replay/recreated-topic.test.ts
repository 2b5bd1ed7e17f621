import pino from 'pino'
import { expect, test } from 'vitest'
import { readConfig } from '../../../src/config/read.ts'
import { createPartitionReader } from '../../../src/kafka/read/partition-reader.ts'
import { removeTopics } from '../../../src/topics/topic-grow.ts'
import { openReplayReading } from '../../../src/roles/operations/replay-jobs.ts'
import { createTopic, otherProgram, produce, randomPrefix, testKafka } from '../../support/kafka.ts'
import { workerKafka } from '../../support/worker-kafka.ts'

const numbered = (count: number) => Array.from({ length: count }, (_, number) => ({ value: `${number}` }))

test('a replay does not read the records of a topic that was created again, though it has enough of them', async () => {
  const prefix = randomPrefix()
  const topic = `${prefix}dead-letters`
  const env = { SLUICE_KAFKA_BROKERS: testKafka().join(','), SLUICE_KAFKA_TOPIC_PREFIX: prefix }
  const read = readConfig({ env })
  if (!read.ok) throw new Error(read.message)
  const reader = createPartitionReader(workerKafka(), { keepsOpen: true })
  const reading = await openReplayReading(read.config, pino({ level: 'silent' }), reader)
  try {
    await createTopic(topic)
    await produce(topic, numbered(10))
    const topicId = await reading.topicId('dead-letters')
    expect(topicId).toHaveLength(22)
    const where = { partition: 0, from: 0, to: 10 }
    expect(await reading.pieces('dead-letters', topicId).piece(where)).toMatchObject({ next: 10 })
    await removeTopics(otherProgram(), [topic])
    await createTopic(topic)
    await produce(topic, numbered(20))
    expect(await reading.pieces('dead-letters', topicId).piece(where)).toBe('recreated')
    // The order of an earlier version has no id.
    expect(await reading.pieces('dead-letters').piece(where)).toMatchObject({ next: 10 })
  } finally {
    reading.stop()
    await reader.stop()
  }
})
