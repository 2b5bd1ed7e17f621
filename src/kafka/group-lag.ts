import type { Admin, Kafka } from 'kafkajs'

/**
 * How many records a group has still to commit, of all partitions of each topic; what was never committed
 * counts from the begin of the log. Asks the brokers, so it is true of the group whoever is in it. A topic
 * that can't be asked for is in `failures`.
 */
export async function readGroupLag(
  admin: Admin,
  groupId: string,
  topics: readonly string[],
): Promise<{ lag: ReadonlyMap<string, number>; failures: ReadonlyMap<string, unknown> }> {
  const lag = new Map<string, number>()
  const failures = new Map<string, unknown>()
  for (const topic of topics) {
    try {
      lag.set(topic, await lagOf(admin, groupId, topic))
    } catch (error) {
      failures.set(topic, error)
    }
  }
  return { lag, failures }
}

async function lagOf(admin: Admin, groupId: string, topic: string): Promise<number> {
  // Commits first: what is settled in between must not make it negative, nor hide that something came.
  const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] })
  const positions = new Map(committed?.partitions.map(({ partition, offset }) => [partition, Number(offset)]))
  const ends = await admin.fetchTopicOffsets(topic)
  return ends.reduce((sum, { partition, high, low }) => {
    const position = Math.max(positions.get(partition) ?? -1, Number(low))
    return sum + Math.max(0, Number(high) - position)
  }, 0)
}

/** The same of one topic, asked for now and then. Rejects where it can't be had. */
export function openTopicLag(
  kafka: Kafka,
  groupId: string,
  topic: string,
): { read(): Promise<number>; stop(): Promise<void> } {
  const admin = kafka.admin()
  let connected: Promise<void> | undefined
  return {
    async read() {
      connected ??= admin.connect()
      try {
        await connected
      } catch (error) {
        connected = undefined
        throw error
      }
      return lagOf(admin, groupId, topic)
    },
    async stop() {
      if (connected !== undefined) await admin.disconnect()
    },
  }
}
