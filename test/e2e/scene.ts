import { randomBytes } from 'node:crypto'
import { Partitioners } from 'kafkajs'
import { onTestFinished } from 'vitest'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { groupLag } from '../support/group-lag.ts'
import { otherProgram, randomPrefix, testKafka } from '../support/kafka.ts'
import { applyTopics, type CatalogData, writeCatalog } from '../support/worker-process.ts'

/**
 * Settings for tests that are not about lanes or breakers. With these settings, the worker parks a delivery
 * only after a failed attempt.
 */
export const unhurried = {
  SLUICE_BREAKER_MIN_RESULTS: '10000',
  SLUICE_DELIVERY_LANE_WAIT: '10m',
  SLUICE_DELIVERY_LANE_PATIENCE: '1m',
}

/** The topics, the consumer group and the catalog that only one test uses. */
export type Scene = {
  prefix: string
  /** The environment variables for `startSluice` and `runSluice`. */
  variables: Record<string, string>
  catalog: ReturnType<typeof writeCatalog>
  /** Produces a `track` message for each id, as an upstream service would. */
  send(sourceId: string, messageIds: readonly string[]): Promise<void>
  /** Returns the number of records that the group has not committed, over all topics that it reads. */
  lag(): Promise<number>
  close(): void
}

export type SceneOptions = {
  catalog: CatalogData
  variables?: Record<string, string>
  brokers?: readonly string[]
}

export async function setScene({
  catalog: data,
  variables: own = {},
  brokers = testKafka(),
}: SceneOptions): Promise<Scene> {
  const prefix = randomPrefix()
  const catalog = writeCatalog(data)
  const groupId = `${prefix}group`
  const variables = {
    SLUICE_KAFKA_BROKERS: brokers.join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: prefix,
    SLUICE_KAFKA_GROUP_ID: groupId,
    SLUICE_KAFKA_SESSION_TIMEOUT: '6s',
    SLUICE_CATALOG_FILE: catalog.path,
    ...own,
  }
  await applyTopics(variables)
  return {
    prefix,
    variables,
    catalog,
    send: (sourceId, messageIds) => sendTracks(brokers, `${prefix}events`, sourceId, messageIds),
    lag: () => withAdmin(otherProgram(brokers), (admin) => groupLag(admin, groupId, prefix)),
    close: () => catalog.remove(),
  }
}

/**
 * Opens a scene for the running test, and closes it when the test ends. The messages of the source `shop` go
 * to `url`.
 */
export async function setShopScene(url: string, variables: Record<string, string>): Promise<Scene> {
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url }] }],
    },
    variables,
  })
  onTestFinished(() => scene.close())
  return scene
}

/** Returns `count` ids that no other call returns. */
export function newIds(count: number): string[] {
  const run = randomBytes(4).toString('hex')
  return Array.from({ length: count }, (_, index) => `${run}-${index}`)
}

const batchSize = 2_000

async function sendTracks(
  brokers: readonly string[],
  topic: string,
  sourceId: string,
  messageIds: readonly string[],
): Promise<void> {
  const producer = otherProgram(brokers).producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  try {
    for (let start = 0; start < messageIds.length; start += batchSize) {
      const messages = messageIds.slice(start, start + batchSize).map((messageId) => ({
        key: `user-${messageId}`,
        value: JSON.stringify({
          type: 'track',
          messageId,
          userId: `user-${messageId}`,
          event: 'Order Completed',
          properties: { order: messageId, total: 12.5 },
        }),
        headers: { 'source-id': sourceId },
      }))
      await producer.send({ topic, messages, acks: -1 })
    }
  } finally {
    await producer.disconnect()
  }
}
