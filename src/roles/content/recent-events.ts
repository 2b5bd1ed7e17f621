import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { createPartitionReader, offsetRanges } from '../../kafka/read/partition-reader.ts'
import { clientOf } from '../start/ask-kafka.ts'
import { openDecoder } from '../start/schema-registry.ts'
import { kafkaSettings, topicNames } from '../start/settings.ts'
import { readPayload } from './payload.ts'
import { type LatestEvents, latestEvents } from './source-events.ts'

type Log = Pick<Logger, 'warn'>

/** How long the schema registry may take for a record, in milliseconds. */
const decodedWithinMs = 5_000

/** Reads the last events of a source, newest first, as their producers wrote them. */
export async function readLatest(
  config: Config,
  log: Log,
  sourceId: string,
  limit: number,
): Promise<LatestEvents> {
  const kafka = clientOf(kafkaSettings(config), { warn: log.warn.bind(log), debug() {} })
  const { events: topic } = topicNames(config)
  const reader = createPartitionReader(kafka, { keepsOpen: true })
  try {
    const ranges = await offsetRanges(kafka, topic, {})
    return await latestEvents(reader, { topic, ranges, sourceId, limit })
  } finally {
    await reader.stop()
  }
}

/**
 * Reads the last events of a source as plain JSON. `value` is null if a record can't be read, for example
 * because the schema registry doesn't answer.
 */
export async function recentEvents(
  config: Config,
  log: Log,
  sourceId: string,
  limit: number,
): Promise<readonly { readonly value: Uint8Array | null; readonly atMs: number }[]> {
  const { events } = await readLatest(config, log, sourceId, limit)
  const decoder = await openDecoder(config, silent, { onDown: () => undefined })
  try {
    return await Promise.all(
      events.map(async ({ value, timestampMs }) => {
        const options = { messageId: undefined, isFramed: true, decoder, withinMs: decodedWithinMs }
        const { payload } = await readPayload(value, options)
        return { value: payload === undefined ? null : Buffer.from(payload), atMs: timestampMs }
      }),
    )
  } finally {
    decoder.stop()
  }
}

const silent = { info() {}, warn() {}, error() {} }
