import type { Logger } from 'pino'
import type { GroupConsumer } from '../kafka/consumer.ts'
import type { FailingPartition } from '../kafka/failing-partitions.ts'
import { groupSubscriptions, type TopicNames } from '../kafka/topics.ts'
import type { Pipeline } from '../pipeline/pipeline-ports.ts'

export type StandingUnitsOptions = {
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly topics: TopicNames
  /** The retry topics that the group reads, by their full names. */
  readonly tiers: readonly { readonly topic: string; readonly waitMs: number }[]
}

/** The parts in which a unit is stopped, if they have started. */
export type StandingParts = {
  readonly pipeline: Pick<Pipeline, 'setStanding'> | undefined
  readonly consumer: Pick<GroupConsumer, 'setPartitionFull'> | undefined
}

/**
 * Stops a unit while a partition that its deliveries are written to takes no records. The unit's records
 * aren't fetched, and none of its attempts begin. All other units continue.
 */
export class StandingUnits {
  readonly #options: StandingUnitsOptions
  readonly #parts: () => StandingParts
  /** The topics that fail, by unit. */
  readonly #failing = new Map<number, Set<string>>()

  constructor(options: StandingUnitsOptions, parts: () => StandingParts) {
    this.#options = options
    this.#parts = parts
  }

  readonly changed = ({ topic, partition, reason }: FailingPartition, isFailing: boolean): void => {
    const { log, topics: names } = this.#options
    if (isFailing) log.warn({ topic, partition, reason }, 'a partition does not take what is written to it')
    else log.info({ topic, partition }, 'the partition takes what is written to it again')
    // Only retry topics and dead letters stop a unit: without them the outcome of a delivery can't be
    // written.
    if (topic !== names.deadLetters && !topic.startsWith(names.retryPrefix)) return
    const topics = this.#failing.get(partition) ?? new Set()
    if (isFailing) topics.add(topic)
    else topics.delete(topic)
    if (topics.size > 0) this.#failing.set(partition, topics)
    else this.#failing.delete(partition)
    this.#setStanding(partition, topics.size > 0)
  }

  /**
   * Stops the failing units again after an assignment, since a partition that returns to this member is
   * fetched.
   */
  assigned(): void {
    for (const unit of this.#failing.keys()) this.#setStanding(unit, true)
  }

  #setStanding(unit: number, isStanding: boolean): void {
    const { topics, tiers } = this.#options
    const { pipeline, consumer } = this.#parts()
    pipeline?.setStanding(unit, isStanding)
    for (const { topic } of groupSubscriptions(topics, tiers))
      consumer?.setPartitionFull(topic, unit, isStanding, 'produce')
  }
}
