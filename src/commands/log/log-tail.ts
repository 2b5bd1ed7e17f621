import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { readBlock } from '../../delivery-log/block-reader.ts'
import { recordHeading, recordLine } from '../../delivery-log/lines.ts'
import type { LogRecord } from '../../delivery-log/log-record.ts'
import { startTopicTail, type TopicTail } from '../../kafka/read/topic-tail.ts'
import { openKafka } from '../../roles/start/ask-kafka.ts'
import { topicNames } from '../../roles/start/settings.ts'
import { unknownIds } from './unknown-ids.ts'

export type TailOptions = {
  readonly destination: string | undefined
  readonly onlyFailed: boolean
  readonly isJson: boolean
  /** Writes a line. Returns false when the reader of the output can't keep up. */
  readonly write: (line: string) => boolean
  /** Resolves when the reader of the output has read all written lines. */
  readonly drained: () => Promise<void>
  /** Shows the user a line with the reason why the log can't be read. */
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

/** Writes the records that workers log from now on. Reads the topic directly, without an index. */
export async function tailLog(config: Config, log: Logger, options: TailOptions): Promise<void> {
  const { destination, onlyFailed, isJson, write, drained, say, signal } = options
  const kafka = await openKafka(config, log, 'log tail')
  const ended = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => ended.resolve(), { once: true })
  const { columns } = process.stdout
  if (!isJson) write(recordHeading(columns))
  const tail: TopicTail = startTopicTail({
    kafka,
    topic: topicNames(config).attempts,
    startOf: () => 'end',
    onStart: () => undefined,
    onRecords(partition, records) {
      let isKeepingUp = true
      for (const { value } of records) {
        for (const record of statesOf(value, partition)) {
          if (destination !== undefined && record.destination !== destination) continue
          if (onlyFailed && !isFailure(record)) continue
          isKeepingUp = write(isJson ? JSON.stringify(record) : recordLine(record, columns))
        }
      }
      if (isKeepingUp) return
      // Fetching pauses, so that the records of at most one fetch wait in memory.
      tail.setFull(true)
      void drained().then(() => tail.setFull(false))
    },
    log,
  })
  let said: string | undefined
  const timer = setInterval(() => {
    const { trouble } = tail
    if (trouble !== undefined && trouble !== said) say(`sluice: nothing can be followed yet: ${trouble}`)
    said = trouble
  }, lookEveryMs)
  try {
    for (const line of await unknownIds(config, log, 'log tail', { destination, source: undefined }))
      say(`${line} Until there is one, nothing comes.`)
    if (!signal.aborted) await ended.promise
  } finally {
    clearInterval(timer)
    await tail.stop()
  }
}

/**
 * How often the tail checks whether it has a trouble to show, in milliseconds. A trouble that ends sooner may
 * not be shown.
 */
const lookEveryMs = 3_000

/**
 * Decodes a block of records. Returns no records if the block is damaged or has the format of a later
 * version.
 */
function statesOf(value: Buffer | null, partition: number): readonly LogRecord[] {
  try {
    return value === null ? [] : readBlock(value, partition)
  } catch (error) {
    if (error instanceof RangeError) return []
    throw error
  }
}

function isFailure({ kind, verdict }: LogRecord): boolean {
  return kind === 'dead' || (kind === 'attempted' && verdict !== 'delivered')
}
