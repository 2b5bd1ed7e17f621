import type { Admin } from 'kafkajs'

/** Where a group stands in the topics that it reads. */
export type GroupStand = {
  /** That it has not committed. */
  lag: number
  /** By `topic/partition`: -1 where it has committed nothing. A broker that has just started may not know all topics. */
  committed: ReadonlyMap<string, number>
}

/** Records that the group has not committed, of all topics with the prefix that it reads. */
export async function groupLag(admin: Admin, groupId: string, prefix: string): Promise<number> {
  return (await groupStand(admin, groupId, prefix)).lag
}

export async function groupStand(admin: Admin, groupId: string, prefix: string): Promise<GroupStand> {
  const all = await admin.listTopics()
  const unread = new Set([
    `${prefix}dead-letters`,
    `${prefix}backfills`,
    `${prefix}replay-jobs`,
    `${prefix}attempts`,
    `${prefix}notices`,
  ])
  const topics = all.filter((topic) => topic.startsWith(prefix) && !unread.has(topic))
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
