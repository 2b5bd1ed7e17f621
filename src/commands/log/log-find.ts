import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { plain, timelineOf } from '../../delivery-log/lines.ts'
import type { LogQuery } from '../../delivery-log/log-query.ts'
import type { LogRecord } from '../../delivery-log/log-record.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import { nameOf, originsOf, type Payload, readPayloads } from '../../roles/content/payloads.ts'
import { roughly } from '../../roles/operations/destination-health.ts'
import { openHealthReading } from '../../roles/operations/health-reading.ts'
import { hashedValue } from '../../roles/operations/open-log-query.ts'
import { clientOf } from '../../roles/start/ask-kafka.ts'
import { notesOn, notFoundNotes } from './find-notes.ts'
import { type CommandOutput, withQuery } from './log-search.ts'
import { kafkaSettings } from '../../roles/start/settings.ts'

type Log = Pick<Logger, 'warn' | 'debug'>
type Shown = { readonly withPayload: boolean; readonly isJson: boolean }

/** A value may be in many messages. The last ones are shown. */
const mostMessages = 10

/**
 * Finds what the delivery log has about a message, and the message's payload if Kafka still has it. If
 * `sought` is no messageId, finds the last messages that have it as an indexed value.
 */
export async function findMessages(
  config: Config,
  log: Log,
  { sought, ...shown }: Shown & { readonly sought: string },
): Promise<CommandOutput> {
  const found = await withQuery(config, async (query) => {
    const records = await query.find(sought)
    return records.length > 0 ? [records] : messagesWith(config, query, sought)
  })
  if (found.length === 0) {
    const lines = shown.isJson
      ? []
      : [
          `The log has nothing of the message ${plain(sought)}: it is not written yet, too old, or a success that was sampled out.`,
          ...notFoundNotes,
        ]
    return { lines, isFound: false }
  }
  const lines: string[] = []
  for (const records of found) lines.push(...(await linesOf(config, log, records, shown)))
  const isMany = found.length === mostMessages && !shown.isJson
  const more = `These are the last ${mostMessages} messages with this value: sluice log search --value finds all.`
  return { lines: isMany ? [...lines, more] : lines, isFound: true }
}

/** Returns the records of the last messages that have an indexed value, with the oldest message first. */
async function messagesWith(
  config: Config,
  query: LogQuery,
  sought: string,
): Promise<(readonly LogRecord[])[]> {
  const value = hashedValue(config, sought)
  if (value === undefined) return []
  const ids = new Set<string>()
  for (let cursor: string | undefined; ;) {
    const page = await query.search({ fromMs: 0, toMs: Infinity, value }, { limit: 1_000, cursor })
    for (const { messageId } of page.records) if (ids.size < mostMessages) ids.add(messageId)
    cursor = page.cursor
    if (ids.size >= mostMessages || cursor === undefined) break
  }
  const found: (readonly LogRecord[])[] = []
  for (const id of [...ids].toReversed()) found.push(await query.find(id))
  return found
}

/** Describes a message by its records, of which there is at least one. */
async function linesOf(
  config: Config,
  log: Log,
  records: readonly LogRecord[],
  { withPayload, isJson }: Shown,
): Promise<readonly string[]> {
  const messageId = records[0]?.messageId ?? ''
  const payloads = withPayload ? await readPayloads(config, log, messageId, originsOf(records)) : []
  if (isJson) return [...records, ...payloads.map(shownPayload)].map((one) => JSON.stringify(one))
  const turns = withPayload && isAnyInQueue(records) ? await readTurns(config, log) : undefined
  const [first] = records
  const about = `Message ${plain(messageId)}: ${plain(first?.messageType ?? '')} of source ${plain(first?.source ?? '')}`
  return [about, ...payloads.map(payloadLine), ...timelineOf(records, turns), ...notesOn(records, config)]
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

function shownPayload({ origin, payload, note }: Payload): object {
  return { payload, note, origin }
}

function payloadLine({ origin, payload, note }: Payload): string {
  return `${nameOf(origin)}: ${note ?? plain(payload ?? '')}`
}
