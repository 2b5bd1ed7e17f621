import { expect, onTestFinished, test, vi } from 'vitest'
import { createClusterView } from '../../../../src/kafka/cluster/cluster-view.ts'
import { kafkaOf, nothing } from '../scripted-kafka.ts'

const log = { warn: nothing, error: nothing }

/** What a broker says of a topic with so many partitions. */
function topicOf(partitions: number): object {
  const partition = {
    partitionErrorCode: 0,
    leader: 1,
    leaderEpoch: 0,
    replicas: [1],
    isr: [1],
    offlineReplicas: [],
  }
  return {
    topicErrorCode: 0,
    topic: 'attempts',
    topicId: undefined,
    isInternal: false,
    partitionMetadata: Array.from({ length: partitions }, (_, partitionId) => ({
      ...partition,
      partitionId,
    })),
  }
}

test('a topic with too many partitions, and brokers that do not answer, are told once', async () => {
  const told: string[] = []
  const tell = (_fields: object, message: string): void => void told.push(message)
  const cluster = {
    addMultipleTargetTopics: nothing,
    brokerPool: { metadata: { topicMetadata: [topicOf(3)] } },
    refreshMetadata: () => Promise.reject(new Error('no broker answers')),
  }
  const view = createClusterView({
    kafka: kafkaOf([cluster]),
    topics: ['attempts'],
    partitions: 2,
    log: { warn: tell, error: tell },
  })
  onTestFinished(() => view.close())
  await view.connect()
  await view.refresh()
  await view.refresh()
  expect(view.leaderOf('attempts', 0)?.nodeId).toBe(1)
  expect(told).toEqual([
    'a topic has more partitions than topics.partitions: records in the partitions beyond are NOT read until topics.partitions and all other topics have as many',
    'no broker reports the leaders of partitions: using the last known ones, trying again',
  ])
})

test('a view that connects again and again, because its topic is missing, has one timer', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const cluster = { addMultipleTargetTopics: nothing }
  const view = createClusterView({ kafka: kafkaOf([cluster]), topics: ['attempts'], log })
  for (let tries = 0; tries < 5; tries++) await view.connect()
  expect(vi.getTimerCount()).toBe(1)
  await view.close()
  expect(vi.getTimerCount()).toBe(0)
  await view.connect()
  expect(vi.getTimerCount()).toBe(0)
})
