/**
 * The reason why Kafka doesn't take records of a partition. `partition` is `undefined` if the whole topic is
 * affected.
 */
export type Obstacle = {
  readonly topic: string
  readonly partition: number | undefined
  readonly reason: string
}

type Replicas = { readonly leader: number; readonly isr: readonly number[] }

/** A partition takes records only if it has a leader, and at least `minInsync` in-sync replicas. */
export function isOpen({ leader, isr }: Replicas, minInsync: number): boolean {
  return leader >= 0 && isr.length >= minInsync
}

export const missingTopic = (topic: string): string => `${topic} does not exist, or may not be written`

/** Lists what keeps a topic from taking records. `partitions` is empty if no broker knows the topic. */
export function obstaclesOf(
  topic: string,
  partitions: readonly (Replicas & { readonly partitionId: number })[],
  minInsync: number,
): Obstacle[] {
  if (partitions.length === 0) return [{ topic, partition: undefined, reason: missingTopic(topic) }]
  return partitions
    .filter((one) => !isOpen(one, minInsync))
    .map(({ partitionId: partition, leader, isr }) => {
      const lack = leader < 0 ? 'no leader' : `${isr.length} in-sync replicas of ${minInsync}`
      return { topic, partition, reason: `${topic}/${partition} has ${lack}` }
    })
}
