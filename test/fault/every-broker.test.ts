import { expect, test } from 'vitest'
import { errorCodes } from '../../src/kafka/wire/error-codes.ts'
import { metadataRequest } from '../../src/kafka/wire/metadata-request.ts'
import { openPartwiseCluster } from '../../src/kafka/cluster/partwise-cluster.ts'
import { addPartitions, enforceAppendTimes, removeTopics } from '../../src/topics/topic-grow.ts'
import { readSettings } from '../../src/topics/topic-settings.ts'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { ask } from '../../src/kafka/wire/wire-request.ts'
import { otherProgram } from '../support/kafka.ts'
import { startThreeBrokers } from '../support/three-brokers.ts'

/**
 * The number of changes of each kind. Each broker learns of a change some milliseconds after the controller.
 * With this many changes, the test fails if a change doesn't wait for all brokers.
 */
const rounds = 15
const topic = 'changing'

test('whoever asks any broker after a change of a topic is told of the change', async () => {
  const { brokers } = await startThreeBrokers()
  const kafka = otherProgram(brokers)
  await withAdmin(kafka, (admin) => admin.createTopics({ topics: [{ topic }] }))
  const opened = openPartwiseCluster(kafka)
  await opened.cluster.connect()
  await opened.cluster.addMultipleTargetTopics([topic])
  const asked = await Promise.all([1, 2, 3].map((id) => opened.findBroker(id)))

  const counts: number[][] = []
  for (let partitions = 2; partitions < 2 + rounds; partitions++) {
    await addPartitions(kafka, { topics: [topic], partitions, validateOnly: false })
    const answers = await Promise.all(asked.map((broker) => ask(broker, metadataRequest([topic]))))
    counts.push(answers.map(({ topicMetadata: [told] }) => told?.partitionMetadata.length ?? 0))
  }
  expect(counts).toEqual(Array.from({ length: rounds }, (_, round) => Array(3).fill(round + 2)))

  const shape = { topic, key: 'events' as const, purpose: '', partitions: 1, replication: 1 }
  const times: string[][] = []
  for (let round = 0; round < rounds; round++) {
    const value = String(60_000 + round)
    await enforceAppendTimes(kafka, [{ ...shape, settings: [{ name: 'segment.ms', value, rule: 'equal' }] }])
    const answers = await Promise.all(asked.map((broker) => readSettings(broker, topic)))
    times.push(
      answers.map((settings) =>
        typeof settings === 'string' ? settings : (settings.get('segment.ms')?.value ?? ''),
      ),
    )
  }
  expect(times).toEqual(Array.from({ length: rounds }, (_, round) => Array(3).fill(String(60_000 + round))))

  await removeTopics(kafka, [topic])
  const answers = await Promise.all(asked.map((broker) => ask(broker, metadataRequest([topic]))))
  expect(answers.map(({ topicMetadata: [told] }) => told?.topicErrorCode)).toEqual(
    Array(3).fill(errorCodes.UNKNOWN_TOPIC_OR_PARTITION),
  )
  await opened.close()
})
