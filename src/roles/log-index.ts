import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { Indexing, IndexingEvents } from '../delivery-log/indexing.ts'
import type { LogQuery } from '../delivery-log/log-query.ts'
import { openIndexQuery, startIndexing } from '../delivery-log/sqlite/index-threads.ts'
import type { createKafka } from '../kafka/client.ts'
import { startTopicTail, type TopicTail } from '../kafka/topic-tail.ts'
import type { LogMetrics } from '../telemetry/log-metrics.ts'
import { openClickHouse } from './log-clickhouse.ts'
import type { Parts } from './parts.ts'
import { topicNames } from './settings.ts'
import { StartError } from './start-error.ts'

export type LogIndexOptions = {
  config: Config
  kafka: ReturnType<typeof createKafka>
  metrics: LogMetrics
  log: Logger
  parts: Parts
  onFatal: (error: Error) => void
}

/** The index of the delivery log, kept up to date for as long as its parts run. */
export type LogIndex = {
  readonly query: LogQuery
  /** Brings the gauges up to date. */
  collect(): void
  /** What keeps it from being up to date, in words. */
  notReady(): readonly string[]
}

/** What may wait to be written; past it, nothing is fetched until half of it is. */
const maxHeldBytes = 16 * 1024 ** 2

/** The files of this installation: another prefix has others. */
export function indexFolder(config: Config): string {
  return join(config.index.folder, topicNames(config).attempts)
}

export async function openLogIndex(options: LogIndexOptions): Promise<LogIndex> {
  const { config, metrics, log, parts } = options
  const { indexing, openQuery, where } = await openBackend(options, () => {
    if (indexing.heldBytes <= maxHeldBytes / 2) tail.setFull(false)
  })
  parts.defer(() => indexing.stop())
  const tail = parts.add(readInto(indexing, options))
  const query = openQuery(() => tail.behindMs)
  log.info({ ...where, keptMs: config.attempts.retentionMs }, 'the delivery log is being indexed')
  return {
    query,
    collect() {
      const { behindMs } = tail
      metrics.behind.set(behindMs < 0 ? -1 : behindMs / 1_000)
      metrics.heldBytes.set(indexing.heldBytes)
    },
    notReady() {
      const { trouble: unread } = tail
      const { trouble: unwritten } = indexing
      return [
        ...(unread === undefined ? [] : [`the delivery log can not be read: ${unread}`]),
        ...(unwritten === undefined ? [] : [`the delivery log can not be written: ${unwritten}`]),
      ]
    },
  }
}

type Backend = {
  readonly indexing: Indexing
  readonly openQuery: (behindMs: () => number) => LogQuery
  /** For a line of the log. */
  readonly where: Readonly<Record<string, string>>
}

/** ClickHouse where that is set, else files. */
async function openBackend(options: LogIndexOptions, onTaken: () => void): Promise<Backend> {
  const { config, metrics, log, parts } = options
  const events: IndexingEvents = {
    onTaken,
    onIndexed({ rows, unreadable }) {
      metrics.indexed.inc(rows)
      metrics.unreadable.inc(unreadable)
    },
  }
  const clickHouse = await openClickHouse(config, log)
  if (clickHouse === undefined) return openFiles(options, events)
  const indexing = await clickHouse.startIndexing(events, log)
  // What is left is inserted before its connections are closed.
  parts.defer(() => clickHouse.close())
  return {
    indexing,
    openQuery: (behindMs) => clickHouse.query(behindMs),
    where: { clickhouse: config.clickhouse.url ?? '' },
  }
}

async function openFiles(options: LogIndexOptions, events: IndexingEvents): Promise<Backend> {
  const { parts } = options
  const folder = indexFolder(options.config)
  return {
    indexing: await startFiles(options, folder, events),
    openQuery(behindMs) {
      const query = openIndexQuery({ folder, behindMs })
      parts.defer(() => query.close())
      return query
    },
    where: { folder },
  }
}

/** Gives it what comes of the topic, from where it has ended. */
function readInto(indexing: Indexing, { config, kafka, log }: LogIndexOptions): TopicTail {
  const tail: TopicTail = startTopicTail({
    kafka,
    topic: topicNames(config).attempts,
    startOf: (partition) => indexing.positions.get(partition) ?? 'beginning',
    onStart(partition, next, topicId, isOther) {
      if (isOther) log.warn({ partition, next }, otherLog)
      indexing.restart(partition, next, topicId, isOther)
    },
    onRecords(partition, records) {
      const blocks = records.flatMap(({ offset, timestampMs, value }) =>
        value === null ? [] : [{ partition, offset, timestampMs, value }],
      )
      if (blocks.length > 0) indexing.add(blocks)
      if (indexing.heldBytes > maxHeldBytes) tail.setFull(true)
    },
    log,
  })
  return tail
}

const otherLog = 'the topic attempts was made again or cut: what it has now is indexed beside what it had'

async function startFiles(
  { config, onFatal }: LogIndexOptions,
  folder: string,
  events: IndexingEvents,
): Promise<Indexing> {
  try {
    return await startIndexing({
      ...events,
      folder,
      keptMs: config.attempts.retentionMs,
      onFailed: (error) =>
        onFatal(new Error(`the index of the delivery log in ${folder} can not be written`, { cause: error })),
    })
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new StartError(
      `The index of the delivery log in ${folder} can not be opened (${why}): set SLUICE_INDEX_FOLDER to a folder that this user may write; a damaged one can be removed, and is made again from the topic.`,
      { cause },
    )
  }
}
