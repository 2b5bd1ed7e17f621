import type { Admin, Cluster, Kafka, Logger, RetryOptions } from 'kafkajs'
import { notesOf } from './client-notes.ts'
import { kafkajsFile } from '../wire/kafkajs-file.ts'
import { within } from '../../async/within.ts'
import { openPartwiseCluster } from './partwise-cluster.ts'

/** Calls `work` with an admin client of its own, and closes the client afterwards. */
export async function withAdmin<T>(kafka: Kafka, work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = openAdmin(kafka)
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

/** The host and port at which a broker wants to be reached, as its `advertised.listeners` has them. */
export type AdvertisedPlace = { readonly host: string; readonly port: number }

/**
 * Connects and logs in to a broker. Returns the places at which the brokers of its cluster want to be
 * reached. Rejects when the client gives up. Rejects with `late()` if this takes longer than `withinMs`. A
 * throttle that a broker has announced doesn't count.
 */
export async function reach(
  kafka: Kafka,
  { withinMs, late }: { readonly withinMs: number; readonly late: () => Error },
): Promise<readonly AdvertisedPlace[]> {
  const opened = openPartwiseCluster(kafka)
  const reached = opened.cluster.connect().then(() => opened.cluster.refreshMetadata())
  try {
    if (await within(withinMs, reached, () => opened.readsFromMs)) return opened.metadata?.brokers ?? []
  } finally {
    // If nothing was answered, nobody waits for this.
    void reached.catch(() => undefined).then(() => opened.close())
  }
  throw late()
}

/** Returns the id of a Kafka cluster. Two clusters have different ids, even if they have the same address. */
export function clusterIdOf(kafka: Kafka): Promise<string> {
  return withAdmin(kafka, async (admin) => (await admin.describeCluster()).clusterId)
}

type CreateAdmin = (parts: { logger: Logger; cluster: Cluster; retry?: RetryOptions | undefined }) => Admin

/**
 * Makes an admin client in which an error of one partition or topic doesn't affect the others. The client of
 * `kafka.admin()` fails as a whole while any partition of the cluster has no leader, even if nobody asked
 * about that partition. With that client, no role could start while any partition has no leader.
 *
 * `fetchTopicMetadata` of this client reports an unknown topic as a topic without partitions, and a missing
 * leader as the leader -1.
 */
function openAdmin(kafka: Kafka): Admin {
  const createAdmin = kafkajsFile<CreateAdmin>('kafkajs/src/admin')
  const { cluster } = openPartwiseCluster(kafka)
  return createAdmin({ logger: kafka.logger(), cluster, retry: notesOf(kafka)?.retry })
}
