import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { untilAborted } from '../../async/until-aborted.ts'
import { within } from '../../async/within.ts'
import type { Config } from '../../config/schema.ts'
import { encodeHealth, type HealthRecord } from '../../health/health-record.ts'
import type { DestinationFacts, Facts, Reporter } from '../../health/reporter.ts'
import { type RecordProducer, startProducer, whileAnyFails } from '../../kafka/produce/producer.ts'
import type { Pipeline } from '../../pipeline/pipeline-ports.ts'
import { maxRetryRecordBytes } from '../../topics/topic-list.ts'
import type { WaitingQueues } from '../../waiting/queues.ts'
import type { KafkaClient } from '../operations/replay-jobs.ts'
import { topicNames } from '../start/settings.ts'

export type OpenHealthOptions = {
  readonly config: Config
  readonly log: Logger
  readonly kafka: KafkaClient
  readonly reporter: Reporter
  readonly waiting: Pick<WaitingQueues, 'backlogs' | 'oldestOf' | 'learnTimes' | 'readyUnits'>
  readonly pipeline: Pick<Pipeline, 'lanes' | 'lowered' | 'paceOf' | 'waitingFor'>
}

/** The part of a member that tells other processes what it knows of destinations. */
export type OpenHealth = { stop(): Promise<void> }

/** Time between two reports, in milliseconds. */
const everyMs = 3_000
/** Reports take at most this part of the time, even if messages of a hundred thousand destinations wait. */
const mostOfTime = 0.05
const stopWithinMs = 500

/**
 * Opens the part that writes to the topic `health`. It has connections of its own to Kafka, so no delivery
 * waits if this topic can't be written.
 */
export function openHealth(options: OpenHealthOptions): OpenHealth {
  const { config, log, kafka, reporter, waiting } = options
  const topic = topicNames(config).health
  const stopping = new AbortController()
  const { signal } = stopping
  let producer: RecordProducer | undefined

  async function write(records: readonly HealthRecord[]): Promise<void> {
    producer ??= await startProducer({
      kafka,
      maxRecordBytes: maxRetryRecordBytes(config.message.maxBytes),
      onFailing: whileAnyFails((isFailing, reason) => {
        if (isFailing)
          log.warn({ reason }, 'Kafka does not accept what waits of each destination; deliveries go on')
        else log.info('Kafka accepts what waits of each destination again')
      }),
    })
    const opened = producer
    const placed = { topic, partition: 0, headers: {} }
    await Promise.all(records.map((record) => opened.produce({ ...encodeHealth(record), ...placed })))
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const startedMs = performance.now()
      const records = reporter.report(factsOf(options), Date.now())
      const tookMs = performance.now() - startedMs
      try {
        // What is true of the process comes last: it says that the rest is written.
        await untilAborted(write(records.slice(0, -1)), signal)
        await untilAborted(write(records.slice(-1)), signal)
        await untilAborted(waiting.learnTimes(), signal)
      } catch (error) {
        if (signal.aborted) break
        log.debug({ err: error }, 'what waits of each destination can not be told, trying again')
        reporter.forget()
      }
      await delay(Math.max(everyMs, tookMs / mostOfTime), undefined, { signal }).catch(() => undefined)
    }
  }

  const running = run()
  return {
    async stop() {
      stopping.abort(new Error('the worker stops'))
      await running
      await within(
        stopWithinMs,
        write(reporter.end()).catch(() => undefined),
      )
      await within(stopWithinMs, producer?.stop() ?? Promise.resolve())
    },
  }
}

/** Returns what this process has to tell now. */
function factsOf({ config, waiting, pipeline }: OpenHealthOptions): Facts {
  const backlogs = waiting.backlogs()
  const lanes = new Map([...pipeline.lanes()].map((lane) => [lane.destinationId, lane]))
  const lowered = new Set(pipeline.lowered())
  const destinations = new Map<string, DestinationFacts>()
  for (const id of new Set([...backlogs.keys(), ...lanes.keys(), ...lowered])) {
    const { messages, replayed } = backlogs.get(id) ?? { messages: 0, replayed: 0 }
    const pace = pipeline.paceOf(id)
    destinations.set(id, {
      messages: messages + pipeline.waitingFor(id),
      replayed,
      limit: pace && {
        inFlight: pace.inFlight,
        ...(pace.perSecond !== undefined && { perSecond: Math.round(pace.perSecond * 1_000) / 1_000 }),
        isLowered: lowered.has(id),
      },
    })
  }
  return {
    destinations,
    oldestMs(id) {
      const inLane = lanes.get(id)?.oldestMs
      if ((backlogs.get(id)?.messages ?? 0) === 0) return inLane ?? Date.now()
      const inQueue = waiting.oldestOf(id)
      return inQueue === undefined ? undefined : Math.min(inQueue, inLane ?? inQueue)
    },
    process: { units: [...waiting.readyUnits], of: config.topics.partitions },
  }
}
