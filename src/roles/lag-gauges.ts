import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { createKafka } from '../kafka/client.ts'
import { readGroupLag } from '../kafka/group-lag.ts'
import { isRead, shortTopicName } from '../kafka/topics.ts'
import { within } from '../kafka/within.ts'
import type { CommonMetrics } from '../telemetry/common-metrics.ts'
import type { Part } from './parts.ts'
import { topicNames } from './settings.ts'

const readEveryMs = 15_000
const stopWithinMs = 500

/**
 * Tells the lag of the whole group as the brokers have it: also while no worker runs, when nobody else would.
 * What can't be read has no series, and is said once until it can be read again.
 */
export async function openGroupLag(deps: {
  kafka: ReturnType<typeof createKafka>
  config: Config
  metrics: Pick<CommonMetrics, 'groupLag'>
  log: Pick<Logger, 'warn' | 'info'>
}): Promise<Part> {
  const { kafka, config, metrics, log } = deps
  const { groupId, topicPrefix } = config.kafka
  const admin = kafka.admin()
  let isTrouble = false
  let reading: Promise<void> | undefined

  function show(lag: ReadonlyMap<string, number>): void {
    metrics.groupLag.reset()
    for (const [topic, records] of lag)
      metrics.groupLag.set({ topic: shortTopicName(topic, topicPrefix) }, records)
  }
  function tell(failures: ReadonlyMap<string, unknown>): void {
    const [first] = failures
    if (first !== undefined && !isTrouble) {
      const [topic, err] = first
      log.warn(
        { err, topic, groupId, topics: failures.size },
        'the lag of the group can not be read, trying again every 15 s: the user needs DESCRIBE on the group and its topics',
      )
    } else if (first === undefined && isTrouble)
      log.info({ groupId }, 'the lag of the group can be read again')
    isTrouble = first !== undefined
  }
  async function read(): Promise<void> {
    try {
      const topics = topicsOf(await admin.listTopics(), config)
      const { lag, failures } = await readGroupLag(admin, groupId, topics)
      show(lag)
      tell(failures)
    } catch (error) {
      show(new Map())
      tell(new Map([['all', error]]))
    }
  }
  function readUnlessUnderWay(): void {
    reading ??= read().finally(() => {
      reading = undefined
    })
  }
  await admin.connect()
  readUnlessUnderWay()
  const timer = setInterval(readUnlessUnderWay, readEveryMs)
  return {
    async stop() {
      clearInterval(timer)
      if (reading !== undefined) await within(stopWithinMs, reading)
      await within(stopWithinMs, admin.disconnect())
    },
  }
}

/** What the group reads, with retry topics of an earlier ladder, of all topics that there are. */
function topicsOf(existing: readonly string[], config: Config): readonly string[] {
  const names = topicNames(config)
  return existing.filter((topic) => isRead(names, topic))
}
