import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { plain, timelineOf } from '../../delivery-log/lines.ts'
import type { LogRecord } from '../../delivery-log/log-record.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import { nameOf, originsOf, type Payload, readPayloads } from '../../roles/content/payloads.ts'
import { roughly } from '../../roles/operations/destination-health.ts'
import { openHealthReading } from '../../roles/operations/health-reading.ts'
import { clientOf } from '../../roles/start/ask-kafka.ts'
import { notesOn, notFoundNotes } from './find-notes.ts'
import { type CommandOutput, withQuery } from './log-search.ts'
import { kafkaSettings } from '../../roles/start/settings.ts'

/** Finds all records of the delivery log about a message, and the message's payload if Kafka still has it. */
export async function findMessage(
  config: Config,
  log: Pick<Logger, 'warn' | 'debug'>,
  { messageId, withPayload, isJson }: { messageId: string; withPayload: boolean; isJson: boolean },
): Promise<CommandOutput> {
  const records = await withQuery(config, (query) => query.find(messageId))
  if (records.length === 0) {
    const lines = isJson
      ? []
      : [
          `The log has nothing of the message ${plain(messageId)}: it is not written yet, too old, or a success that was sampled out.`,
          ...notFoundNotes,
        ]
    return { lines, isFound: false }
  }
  const payloads = withPayload ? await readPayloads(config, log, messageId, originsOf(records)) : []
  if (isJson)
    return { lines: [...records, ...payloads.map(shown)].map((one) => JSON.stringify(one)), isFound: true }
  const turns = withPayload && isAnyInQueue(records) ? await readTurns(config, log) : undefined
  const [first] = records
  const about = `Message ${plain(messageId)}: ${plain(first?.messageType ?? '')} of source ${plain(first?.source ?? '')}`
  return {
    lines: [about, ...payloads.map(payloadLine), ...timelineOf(records, turns), ...notesOn(records, config)],
    isFound: true,
  }
}

/** Returns true if a delivery may wait for its turn in the queue of its destination. */
function isAnyInQueue(records: readonly LogRecord[]): boolean {
  return records.some(({ kind, dueMs }) => kind === 'parked' && dueMs === 0)
}

/** Reads in which time the queue of each destination is sent. Nothing is known if Kafka doesn't tell it. */
async function readTurns(
  config: Config,
  log: Pick<Logger, 'warn' | 'debug'>,
): Promise<((destination: string) => string | undefined) | undefined> {
  if (config.kafka.brokers.length === 0) return undefined
  const kafka = clientOf(kafkaSettings(config), log)
  const reader = createPartitionReader(kafka)
  const untold = (error: unknown) => log.debug({ err: error }, 'what waits of destinations can not be read')
  try {
    const board = await openHealthReading(config, kafka, reader, untold).read()
    const nowMs = Date.now()
    return function turnWithin(destination) {
      const { messages = 0, drainMs } = board?.of(destination, nowMs) ?? {}
      return messages > 0 && drainMs !== undefined ? roughly(drainMs) : undefined
    }
  } finally {
    await reader.stop()
  }
}

function shown({ origin, payload, note }: Payload): object {
  return { payload, note, origin }
}

function payloadLine({ origin, payload, note }: Payload): string {
  return `${nameOf(origin)}: ${note ?? plain(payload ?? '')}`
}
