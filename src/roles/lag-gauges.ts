import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { createKafka } from '../kafka/client.ts'
import { GroupLagReader } from '../kafka/group-lag.ts'
import { isRead, shortTopicName } from '../kafka/topics.ts'
import { withAdmin } from '../kafka/with-admin.ts'
import { within } from '../kafka/within.ts'
import type { CommonMetrics } from '../telemetry/common-metrics.ts'
import type { Part } from './parts.ts'
import { topicNames } from './settings.ts'

/**
 * The shortest interval between two readings. Every process reads the whole group, so the interval grows with
 * the number of partitions.
 */
const leastEveryMs = 15_000
const msEachPartition = 5
/** How often topics are listed, to find retry topics of an earlier ladder. */
const listEveryMs = 600_000
const stopWithinMs = 500

/**
 * Returns the wait until the next reading of a group with this many partitions. `chance`: 0 to 1, which keeps
 * processes from reading all at once.
 */
export function lagWaitMs(partitions: number, chance: number): number {
  return Math.max(leastEveryMs, partitions * msEachPartition) * (0.9 + 0.2 * chance)
}

/**
 * Shows the lag of the whole group as the brokers know it, even while no worker runs. A topic without a
 * readable partition has no series. Failures are logged once, until everything can be read again.
 */
export async function openGroupLag(deps: {
  kafka: ReturnType<typeof createKafka>
  config: Config
  metrics: Pick<CommonMetrics, 'groupLag'>
  log: Pick<Logger, 'warn' | 'info'>
}): Promise<Part> {
  const { kafka, config, metrics, log } = deps
  const { groupId, topicPrefix } = config.kafka
  const names = topicNames(config)
  const reader = new GroupLagReader(kafka, groupId, names.events)
  let topics: readonly string[] = []
  let listedMs = -Infinity
  let isTrouble = false
  let isStopped = false
  let timer: NodeJS.Timeout | undefined

  function show(lag: ReadonlyMap<string, number>): void {
    metrics.groupLag.reset()
    for (const [topic, records] of lag)
      metrics.groupLag.set({ topic: shortTopicName(topic, topicPrefix) }, records)
  }
  function report(failures: ReadonlyMap<string, unknown>): void {
    const [first] = failures
    if (first !== undefined && !isTrouble) {
      const [partition, err] = first
      log.warn(
        { err, partition, groupId, partitions: failures.size },
        'the lag of the group can not be read for some partitions, trying again: they have no leader, or the user needs DESCRIBE on the group and its topics',
      )
    } else if (first === undefined && isTrouble)
      log.info({ groupId }, 'the lag of the group can be read again')
    isTrouble = first !== undefined
  }
  async function list(): Promise<void> {
    if (performance.now() - listedMs < listEveryMs) return
    const existing = await withAdmin(kafka, (admin) => admin.listTopics())
    topics = existing.filter((topic) => isRead(names, topic))
    listedMs = performance.now()
  }
  /** Returns how many partitions the group reads. */
  async function read(): Promise<number> {
    try {
      await list()
      const { lag, failures, partitions } = await reader.read(topics)
      show(lag)
      report(failures)
      return partitions
    } catch (error) {
      show(new Map())
      report(new Map([['all', error]]))
      return 0
    }
  }
  async function readOn(): Promise<void> {
    const partitions = await read()
    if (isStopped) return
    timer = setTimeout(
      () => {
        reading = readOn()
      },
      lagWaitMs(partitions, Math.random()),
    )
  }
  let reading = readOn()
  return {
    async stop() {
      isStopped = true
      clearTimeout(timer)
      await within(stopWithinMs, reading)
      await within(stopWithinMs, reader.close())
    },
  }
}
