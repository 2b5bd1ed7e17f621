import type { Admin } from 'kafkajs'

/** The progress of a group in the topics that it reads. */
export type GroupStand = {
  /** The number of records that the group has not committed. */
  lag: number
  /**
   * The committed offsets by `topic/partition`. An offset is -1 if the group has committed nothing there.
   * Topics may be missing if a broker has just started and doesn't know all topics yet.
   */
  committed: ReadonlyMap<string, number>
}

/** The topics that no group reads, without their prefix and generation. */
const unread = new Set([
  'dead-letters',
  'backfills',
  'replay-jobs',
  'attempts',
  'notices',
  'health',
  'waiting-marks',
  'lending',
])
/** After a growth, the names of topics with a generation have this part. */
const generation = /^g\d+\./

/**
 * Returns how many records the group has not committed. Adds up all topics of the group whose names begin
 * with the prefix.
 */
export async function groupLag(admin: Admin, groupId: string, prefix: string): Promise<number> {
  return (await groupStand(admin, groupId, prefix)).lag
}

export async function groupStand(admin: Admin, groupId: string, prefix: string): Promise<GroupStand> {
  const all = await admin.listTopics()
  const isRead = (topic: string): boolean =>
    topic.startsWith(prefix) && !unread.has(topic.slice(prefix.length).replace(generation, ''))
  const topics = all.filter(isRead)
  const committed = new Map(
    (await admin.fetchOffsets({ groupId, topics })).flatMap(({ topic, partitions }) =>
      partitions.map(({ partition, offset }) => [`${topic}/${partition}`, Number(offset)] as const),
    ),
  )
  let lag = 0
  for (const topic of topics) {
    for (const { partition, low, high } of await admin.fetchTopicOffsets(topic)) {
      const offset = committed.get(`${topic}/${partition}`) ?? -1
      lag += Number(high) - (offset < 0 ? Number(low) : offset)
    }
  }
  return { lag, committed }
}
