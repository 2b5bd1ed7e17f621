import { describeErrorCode, errorCodes } from './error-codes.ts'
import type { PartitionMetadata, TopicMetadata } from './metadata-request.ts'

export type Leader = {
  readonly nodeId: number
  /** -1 where the broker doesn't tell: it is older than Kafka 2.1. */
  readonly leaderEpoch: number
}

const noLeader = -1

/** What is known of one topic. Pure but for itself: it is told what brokers have answered. */
export class TopicView {
  readonly #topic: string
  #errorCode: number = errorCodes.LEADER_NOT_AVAILABLE
  #topicId: string | undefined
  /** Those that it had before: a broker that is behind may still tell of them. */
  readonly #formerIds = new Set<string>()
  #partitions = new Map<number, PartitionMetadata>()

  constructor(topic: string) {
    this.#topic = topic
  }

  get topicId(): string | undefined {
    return this.#topicId
  }

  /** 0 while it isn't known, or gone. */
  get partitions(): number {
    return this.#partitions.size
  }

  leaderOf(partition: number): Leader | undefined {
    const known = this.#partitions.get(partition)
    if (known === undefined || known.leader === noLeader) return undefined
    return { nodeId: known.leader, leaderEpoch: known.leaderEpoch }
  }

  /**
   * Takes what a broker says, but for what is older than what is known. Gives whether that has changed
   * something.
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

  /** What is wrong, and what to do about it. */
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

/** Of the same log the later leader is right. Without an id nobody knows whether it is the same log. */
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
