import { describeErrorCode, errorCodes } from '../wire/error-codes.ts'
import type { PartitionMetadata, TopicMetadata } from '../wire/metadata-request.ts'

export type Leader = {
  readonly nodeId: number
  /** The leader's epoch. -1 if the broker doesn't report it, because the broker is older than Kafka 2.1. */
  readonly leaderEpoch: number
}

const noLeader = -1

/**
 * The known facts about one topic. They come from the brokers' answers that are passed to `take`. This class
 * asks no broker itself.
 */
export class TopicView {
  readonly #topic: string
  #errorCode: number = errorCodes.LEADER_NOT_AVAILABLE
  #topicId: string | undefined
  /** The ids that the topic had before. A broker whose metadata is out of date may still report them. */
  readonly #formerIds = new Set<string>()
  #partitions = new Map<number, PartitionMetadata>()

  constructor(topic: string) {
    this.#topic = topic
  }

  get topicId(): string | undefined {
    return this.#topicId
  }

  /** The number of partitions. 0 while the topic isn't known, or after it was deleted. */
  get partitions(): number {
    return this.#partitions.size
  }

  leaderOf(partition: number): Leader | undefined {
    const known = this.#partitions.get(partition)
    if (known === undefined || known.leader === noLeader) return undefined
    return { nodeId: known.leader, leaderEpoch: known.leaderEpoch }
  }

  /**
   * Takes over the facts of a broker's answer, except for facts that are older than the known facts. Returns
   * true if something has changed.
   */
  take({ topicErrorCode, topicId, partitionMetadata }: TopicMetadata): boolean {
    if (topicId !== undefined && this.#formerIds.has(topicId)) return false
    const isOther = topicId !== undefined && this.#topicId !== undefined && topicId !== this.#topicId
    if (isOther && this.#topicId !== undefined) this.#formerIds.add(this.#topicId)
    const before = isOther ? noPartitions : this.#partitions
    const partitions = new Map(
      partitionMetadata.map((reported) => [
        reported.partitionId,
        laterOf(reported, before.get(reported.partitionId), topicId),
      ]),
    )
    const hasChanged = isOther || topicErrorCode !== this.#errorCode || !areSame(partitions, this.#partitions)
    this.#errorCode = topicErrorCode
    this.#topicId = topicId ?? this.#topicId
    this.#partitions = partitions
    return hasChanged
  }

  /** Returns what is wrong with a partition, and what to do about it. */
  troubleOf(partition: number): string | undefined {
    if (this.#errorCode !== errorCodes.NONE) return topicTrouble(this.#topic, this.#errorCode)
    const known = this.#partitions.get(partition)
    if (known === undefined) {
      return `${this.#topic} has ${this.partitions} partitions, and no partition ${partition}: \`sluice topics check\` says what is expected`
    }
    if (known.leader !== noLeader) return undefined
    const [replicas, offline] = [known.replicas.join(', '), known.offlineReplicas.join(', ')]
    return `${this.#topic}/${partition} has no leader: bring back one of the brokers that have it (${replicas}; offline: ${offline || 'unknown'})`
  }
}

const noPartitions: ReadonlyMap<number, PartitionMetadata> = new Map()

/**
 * Returns the later of two answers about the leader of the same log. If the new answer has no topic id, it
 * isn't known whether the log is the same, so the new answer is taken.
 */
function laterOf(
  reported: PartitionMetadata,
  before: PartitionMetadata | undefined,
  topicId: string | undefined,
): PartitionMetadata {
  if (before === undefined || topicId === undefined) return reported
  return reported.leaderEpoch >= 0 && reported.leaderEpoch < before.leaderEpoch ? before : reported
}

function areSame(
  some: ReadonlyMap<number, PartitionMetadata>,
  others: ReadonlyMap<number, PartitionMetadata>,
): boolean {
  if (some.size !== others.size) return false
  for (const [partition, { leader, leaderEpoch }] of some) {
    const other = others.get(partition)
    if (other?.leader !== leader || other.leaderEpoch !== leaderEpoch) return false
  }
  return true
}

function topicTrouble(topic: string, errorCode: number): string {
  switch (errorCode) {
    case errorCodes.UNKNOWN_TOPIC_OR_PARTITION:
      return `${topic} does not exist: make it again with \`sluice topics apply\``
    case errorCodes.TOPIC_AUTHORIZATION_FAILED:
      return `${topic} may not be read: grant this client DESCRIBE and READ on it`
    default:
      return `${topic} can not be had: ${describeErrorCode(errorCode)}`
  }
}
