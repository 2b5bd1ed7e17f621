import { onTestFinished } from 'vitest'
import { type KafkaNode, type RunningKafka, startKafka } from '../../src/development/kafka.ts'
import { otherProgram } from './kafka.ts'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { until } from './until.ts'

/** Three Kafka brokers that only the calling test uses. A test can stop and start each of them. */
export type ThreeBrokers = RunningKafka & {
  node(id: number): KafkaNode
  /**
   * Resolves when every partition of the topics with this prefix, and of `__consumer_offsets`, has all of its
   * copies in sync.
   */
  untilInSync(prefix: string): Promise<void>
  /**
   * Creates a topic. Partition n is on the brokers `replicas[n]`, and the first of them is its preferred
   * leader.
   */
  createTopic(
    topic: string,
    replicas: readonly (readonly number[])[],
    settings?: Record<string, string>,
  ): Promise<void>
}

export async function startThreeBrokers(): Promise<ThreeBrokers> {
  const cluster = await startKafka({ brokers: [], ways: ['java'], count: 3 })
  onTestFinished(() => cluster.stop())
  const kafka = otherProgram(cluster.brokers)
  return {
    ...cluster,
    node(id) {
      const node = cluster.nodes?.find((each) => each.id === id)
      if (node === undefined) throw new Error(`there is no broker ${id}`)
      return node
    },
    async untilInSync(prefix) {
      await until(
        'all copies are in sync',
        () =>
          withAdmin(kafka, async (admin) => {
            const names = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix))
            const { topics } = await admin.fetchTopicMetadata({ topics: [...names, '__consumer_offsets'] })
            return topics
              .flatMap(({ partitions }) => partitions)
              .every(({ isr, replicas, leader }) => leader >= 0 && isr.length === replicas.length)
          }),
        { timeoutMs: 60_000, everyMs: 500 },
      )
    },
    async createTopic(topic, replicas, settings = {}) {
      const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
      const replicaAssignment = replicas.map((of, partition) => ({ partition, replicas: [...of] }))
      await withAdmin(kafka, (admin) =>
        admin.createTopics({ waitForLeaders: false, topics: [{ topic, replicaAssignment, configEntries }] }),
      )
      // Each try uses a new client. A client that was told that a topic doesn't exist doesn't ask again.
      await until('its leaders serve it', () =>
        withAdmin(kafka, async (admin) => {
          return (await admin.fetchTopicOffsets(topic)).length === replicas.length
        }),
      )
    },
  }
}
