import type { Admin, Cluster, Kafka, Logger, RetryOptions } from 'kafkajs'
import { notesOf } from './client-notes.ts'
import { kafkajsFile } from '../wire/kafkajs-file.ts'
import { openPartwiseCluster } from './partwise-cluster.ts'

type CreateAdmin = (parts: { logger: Logger; cluster: Cluster; retry?: RetryOptions | undefined }) => Admin

/**
 * Makes an admin client in which an error of one partition or topic doesn't affect the others. The client of
 * `kafka.admin()` fails as a whole while any partition of the cluster has no leader, even if nobody asked
 * about that partition. With that client, no role could start while any partition has no leader.
 *
 * `fetchTopicMetadata` of this client reports an unknown topic as a topic without partitions, and a missing
 * leader as the leader -1.
 */
export function openAdmin(kafka: Kafka): Admin {
  const createAdmin = kafkajsFile<CreateAdmin>('kafkajs/src/admin')
  const { cluster } = openPartwiseCluster(kafka)
  return createAdmin({ logger: kafka.logger(), cluster, retry: notesOf(kafka)?.retry })
}
