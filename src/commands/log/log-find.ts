import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { plain, timelineOf } from '../../delivery-log/lines.ts'
import type { LogRecord } from '../../delivery-log/log-record.ts'
import { readRecordAt } from '../../kafka/read/record-at.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import { roughly } from '../../roles/operations/destination-health.ts'
import { openHealthReading } from '../../roles/operations/health-reading.ts'
import { clientOf } from '../../roles/start/ask-kafka.ts'
import { readPayload, type ReadPayload } from './log-payload.ts'
import { notesOn, notFoundNotes } from './find-notes.ts'
import { type CommandOutput, withQuery } from './log-search.ts'
import { openDecoder } from '../../roles/start/schema-registry.ts'
import { kafkaSettings, topicNames } from '../../roles/start/settings.ts'

type Origin = LogRecord['origin']

/** The topic, partition and offset from which a message came, with its payload if Kafka still has it. */
type Payload = ReadPayload & { readonly origin: Origin }

/** How long reading one record may take, in milliseconds. */
const readWithinMs = 10_000
/** The most payloads that are shown. A message that was sent several times has several payloads. */
const maxPayloads = 10

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
  if (isJson) return { lines: [...records, ...payloads].map((one) => JSON.stringify(one)), isFound: true }
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

function originsOf(records: readonly LogRecord[]): Origin[] {
  const byName = new Map(records.map(({ origin }) => [nameOf(origin), origin]))
  return [...byName.values()].slice(0, maxPayloads)
}

async function readPayloads(
  config: Config,
  log: Pick<Logger, 'warn' | 'debug'>,
  messageId: string,
  origins: readonly Origin[],
): Promise<Payload[]> {
  if (config.kafka.brokers.length === 0) {
    const note = 'no Kafka is configured (SLUICE_KAFKA_BROKERS)'
    return origins.map((origin) => ({ origin, payload: undefined, note }))
  }
  const kafka = clientOf(kafkaSettings(config), log)
  const { events, audienceChanges, deletions } = topicNames(config)
  const framed = new Set([events, audienceChanges, deletions])
  let registryTrouble = ''
  const decoder = await openDecoder(config, silent, { onDown: (_isDown, why) => (registryTrouble = why) })
  async function read(origin: Origin): Promise<ReadPayload> {
    const found = await readRecordAt(kafka, origin, readWithinMs)
    if (found === 'gone') return { payload: undefined, note: 'Kafka no longer has it' }
    if ('trouble' in found) return { payload: undefined, note: `it can not be read: ${found.trouble}` }
    return readPayload(found.record.value, {
      messageId,
      isFramed: framed.has(origin.topic),
      decoder,
      withinMs: readWithinMs,
      registryTrouble: () => registryTrouble,
    })
  }
  try {
    // All payloads are read at the same time. So if Kafka doesn't answer, the command waits only once.
    return await Promise.all(origins.map(async (origin) => ({ origin, ...(await read(origin)) })))
  } finally {
    decoder.stop()
  }
}

/** A logger that logs nothing. If a payload can't be read, the field `note` of the result says why. */
const silent = { info() {}, warn() {}, error() {} }

function payloadLine({ origin, payload, note }: Payload): string {
  return `${nameOf(origin)}: ${note ?? plain(payload ?? '')}`
}

function nameOf({ topic, partition, offset }: Origin): string {
  return `${topic}/${partition}/${offset}`
}
