import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { GroupLagReader } from '../../kafka/other-groups/group-lag.ts'
import { isRead, shortTopicName, type TopicNames } from '../../topics/topics.ts'
import { withAdmin } from '../../kafka/cluster/with-admin.ts'
import { within } from '../../async/within.ts'
import type { CommonMetrics } from '../../telemetry/common-metrics.ts'
import type { Part } from './parts.ts'
import { topicNames } from './settings.ts'

/**
 * The shortest interval between two readings of the lag, in milliseconds. Every worker and every gateway
 * reads the lag of the whole group, so the interval grows with the number of partitions.
 */
const leastEveryMs = 15_000
const msEachPartition = 5
/** How often topics are listed in order to find retry topics of an earlier ladder, in milliseconds. */
const listEveryMs = 600_000
const stopWithinMs = 500

/**
 * Returns how long to wait before the next reading of the lag, for a group that reads `partitions`
 * partitions. `chance` is a random number from 0 to 1. It lets the processes read at different times.
 */
export function lagWaitMs(partitions: number, chance: number): number {
  return Math.max(leastEveryMs, partitions * msEachPartition) * (0.9 + 0.2 * chance)
}

type GroupLagOptions = {
  readonly kafka: ReturnType<typeof createKafka>
  readonly config: Config
  readonly metrics: Pick<CommonMetrics, 'groupLag'>
  readonly log: Pick<Logger, 'warn' | 'info'>
}

/**
 * Shows the lag of the whole group. The brokers supply the figures, so the lag is known even while no worker
 * runs. If no partition of a topic can be read, the topic has no series. After a failure was logged, no
 * further failure is logged until all partitions could be read again.
 */
export function openGroupLag(options: GroupLagOptions): Part {
  return new GroupLagGauge(options)
}

class GroupLagGauge implements Part {
  readonly #options: GroupLagOptions
  readonly #names: TopicNames
  readonly #reader: GroupLagReader
  #topics: readonly string[] = []
  #listedMs = -Infinity
  #isTrouble = false
  #isStopped = false
  #timer: NodeJS.Timeout | undefined
  #reading: Promise<void>

  constructor(options: GroupLagOptions) {
    const { kafka, config } = options
    this.#options = options
    this.#names = topicNames(config)
    this.#reader = new GroupLagReader(kafka, config.kafka.groupId, this.#names.events)
    this.#reading = this.#readOn()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await within(stopWithinMs, this.#reading)
    await within(stopWithinMs, this.#reader.close())
  }

  async #readOn(): Promise<void> {
    const partitions = await this.#read()
    if (this.#isStopped) return
    const readAgain = (): void => {
      this.#reading = this.#readOn()
    }
    this.#timer = setTimeout(readAgain, lagWaitMs(partitions, Math.random()))
  }

  /** Reads and shows the lag. Returns how many partitions the group reads, or 0 if the reading has failed. */
  async #read(): Promise<number> {
    try {
      await this.#list()
      const { lag, failures, partitions } = await this.#reader.read(this.#topics)
      this.#show(lag)
      this.#report(failures)
      return partitions
    } catch (error) {
      this.#show(new Map())
      this.#report(new Map([['all', error]]))
      return 0
    }
  }

  async #list(): Promise<void> {
    if (performance.now() - this.#listedMs < listEveryMs) return
    const existing = await withAdmin(this.#options.kafka, (admin) => admin.listTopics())
    // The queues of destinations are no lag: what a pause or a rate limit holds back isn't the workers' work.
    this.#topics = existing.filter((topic) => isRead(this.#names, topic) && topic !== this.#names.waiting)
    this.#listedMs = performance.now()
  }

  #show(lag: ReadonlyMap<string, number>): void {
    const { config, metrics } = this.#options
    metrics.groupLag.reset()
    for (const [topic, records] of lag)
      metrics.groupLag.set({ topic: shortTopicName(topic, config.kafka.topicPrefix) }, records)
  }

  #report(failures: ReadonlyMap<string, unknown>): void {
    // A stop cuts off a reading that is under way.
    if (this.#isStopped) return
    const { config, log } = this.#options
    const { groupId } = config.kafka
    const [first] = failures
    if (first !== undefined && !this.#isTrouble) {
      const [partition, err] = first
      log.warn({ err, partition, groupId, partitions: failures.size }, lagUnreadable)
    } else if (first === undefined && this.#isTrouble)
      log.info({ groupId }, 'the lag of the group can be read again')
    this.#isTrouble = first !== undefined
  }
}

const lagUnreadable =
  'the lag of the group can not be read for some partitions, trying again: they have no leader, or the user needs DESCRIBE on the group and its topics'
