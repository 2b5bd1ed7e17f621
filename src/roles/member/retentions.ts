import type { Logger } from 'pino'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { readRetentions } from '../../topics/retention.ts'
import { within } from '../../async/within.ts'
import type { Part } from '../start/parts.ts'

export type Retentions = Part & {
  /**
   * The retention by topic, in milliseconds. The map is empty until the brokers have answered. Topics that
   * never delete a record because of its age are absent.
   */
  readonly current: ReadonlyMap<string, number>
}

/**
 * How often the retentions are read, in milliseconds. They can change at the brokers at any time, but seldom
 * change.
 */
const readEveryMs = 10 * 60_000
const stopWithinMs = 500

/** Reads the retentions of the topics at once, and again every ten minutes. */
export function openRetentions(deps: {
  kafka: ReturnType<typeof createKafka>
  topics: readonly string[]
  log: Pick<Logger, 'warn'>
}): Retentions {
  const { kafka, topics, log } = deps
  let current: ReadonlyMap<string, number> = new Map()
  let reading: Promise<void> | undefined
  async function read(): Promise<void> {
    try {
      current = await readRetentions(kafka, topics)
    } catch (error) {
      log.warn({ err: error }, 'the retention of the topics could not be read, trying again in 10 minutes')
    }
  }
  function readUnlessUnderWay(): void {
    reading ??= read().finally(() => {
      reading = undefined
    })
  }
  readUnlessUnderWay()
  const timer = setInterval(readUnlessUnderWay, readEveryMs)
  return {
    get current() {
      return current
    },
    async stop() {
      clearInterval(timer)
      if (reading !== undefined) await within(stopWithinMs, reading)
    },
  }
}
