import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { LogRecord } from '../../delivery-log/log-record.ts'
import { readRecordAt } from '../../kafka/read/record-at.ts'
import type { WholeRecord } from '../../message/records.ts'
import { clientOf } from '../start/ask-kafka.ts'
import { openDecoder } from '../start/schema-registry.ts'
import { kafkaSettings, topicNames } from '../start/settings.ts'
import { readPayload, type ReadPayload } from './payload.ts'

export type Origin = LogRecord['origin']

/** The topic, partition and offset from which a message came, with its payload if Kafka still has it. */
export type Payload = ReadPayload & {
  readonly origin: Origin
  /** Absent if Kafka doesn't have it, or didn't answer. */
  readonly record?: WholeRecord
}

/** How long reading one record may take, in milliseconds. */
const readWithinMs = 10_000
/** The most payloads that are shown. A message that was sent several times has several payloads. */
const maxPayloads = 10

/** Returns the places of the records that brought the message of these states: the first ten. */
export function originsOf(records: readonly LogRecord[]): Origin[] {
  const byName = new Map(records.map(({ origin }) => [nameOf(origin), origin]))
  return [...byName.values()].slice(0, maxPayloads)
}

export function nameOf({ topic, partition, offset }: Origin): string {
  return `${topic}/${partition}/${offset}`
}

/**
 * Reads the records that brought a message, all at the same time. So if Kafka doesn't answer, this waits only
 * once.
 */
export async function readPayloads(
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
  async function read(origin: Origin): Promise<Payload> {
    const found = await readRecordAt(kafka, origin, readWithinMs)
    if (found === 'gone') return { origin, payload: undefined, note: 'Kafka no longer has it' }
    if ('trouble' in found)
      return { origin, payload: undefined, note: `it can not be read: ${found.trouble}` }
    const { record } = found
    const shown = await readPayload(record.value, {
      messageId,
      isFramed: framed.has(origin.topic),
      decoder,
      withinMs: readWithinMs,
      registryTrouble: () => registryTrouble,
    })
    return { origin, record, ...shown }
  }
  try {
    return await Promise.all(origins.map(read))
  } finally {
    decoder.stop()
  }
}

/** A logger that logs nothing. If a payload can't be read, the field `note` of the result says why. */
const silent = { info() {}, warn() {}, error() {} }
