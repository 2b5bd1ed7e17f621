import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ProduceLink } from '../../../../src/kafka/produce/produce-link.ts'
import type { ProduceOutcome } from '../../../../src/kafka/produce/produce-outcome.ts'
import { kafkaOf, nothing } from '../scripted-kafka.ts'

const timeouts = { replicasTimeoutMs: 100, sendTimeoutMs: 100 }

/** A cluster that knows the topics that were added to it, each with one partition. */
function clusterOf({
  slow,
  isDead = false,
}: {
  slow?: { topic: string; until: Promise<void> }
  isDead?: boolean
}) {
  const added = new Set<string>()
  return {
    async addMultipleTargetTopics(topics: readonly string[]) {
      if (slow !== undefined && topics.includes(slow.topic)) await slow.until
      else if (isDead) throw new Error('the broker is gone')
      for (const topic of topics) added.add(topic)
    },
    refreshMetadata: nothing,
    refreshMetadataIfNecessary: nothing,
    findTopicPartitionMetadata: (topic: string) =>
      added.has(topic) ? [{ partitionId: 0, leader: 1, isr: [1], replicas: [1] }] : [],
  }
}

test('a topic that is added to dead connections too late is still added to the new connections', async () => {
  const late = Promise.withResolvers<void>()
  const dead = clusterOf({ slow: { topic: 'retry.1m', until: late.promise }, isDead: true })
  const link = new ProduceLink(kafkaOf([dead, clusterOf({})]), timeouts)
  const placing = link.placeOf('retry.1m', null)
  const outcomes: ProduceOutcome[] = []
  const letters = { topic: 'dead-letters', partition: 0, records: [{ value: 'value' }] }
  await link.send([letters], (_item, outcome) => outcomes.push(outcome))
  expect(outcomes).toEqual([
    { isWritten: false, reason: 'the broker is gone', errorCode: undefined, isSent: false },
  ])
  late.resolve()
  expect(await placing).toBe(0)
  expect(await link.placeOf('dead-letters', null)).toBe(0)
  expect(await link.placeOf('retry.1m', null)).toBe(0)
  await link.close()
})

test('a link that is closed while a request is under way makes no further connection', async () => {
  const found = Promise.withResolvers<never>()
  let connects = 0
  const cluster = {
    ...clusterOf({}),
    connect: async () => void connects++,
    findBroker: () => found.promise,
  }
  const link = new ProduceLink(kafkaOf([cluster]), timeouts)
  const outcomes: boolean[] = []
  const records = [{ key: null, value: 'value' }]
  const sent = link.send([{ topic: 'events', partition: 0, records }], (_item, { isWritten }) => {
    outcomes.push(isWritten)
  })
  await nextTurn()
  const before = connects
  await link.close()
  found.reject(new Error('the connection to the broker was closed'))
  await sent
  await nextTurn()
  expect(outcomes).toEqual([false])
  expect(connects).toBe(before)
})
