import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { Indexing, IndexingEvents } from '../../delivery-log/indexing.ts'
import type { LogQuery } from '../../delivery-log/log-query.ts'
import { folderInUse } from '../../delivery-log/sqlite/folder-lock.ts'
import { openIndexQuery, startIndexing } from '../../delivery-log/sqlite/index-threads.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { startTopicTail, type TopicTail } from '../../kafka/read/topic-tail.ts'
import type { LogMetrics } from '../../telemetry/log-metrics.ts'
import { KeptIndex, type KeptIndexOptions, maxHeldBytes } from './kept-index.ts'
import { openClickHouse } from './log-clickhouse.ts'
import type { Parts } from '../start/parts.ts'
import { topicNames } from '../start/settings.ts'
import { StartError } from '../start/start-error.ts'

export type LogIndexOptions = {
  config: Config
  kafka: ReturnType<typeof createKafka>
  metrics: LogMetrics
  log: Logger
  parts: Parts
}

/** The index of the delivery log. It is kept up to date until its parts are stopped. */
export type LogIndex = {
  readonly query: LogQuery
  /** Brings the gauges up to date. */
  collect(): void
  /** Returns the reasons why the index isn't up to date, in words. */
  notReady(): readonly string[]
}

/** Returns the folder of this installation's index. Each topic prefix has a folder of its own. */
export function indexFolder(config: Config): string {
  return join(config.index.folder, topicNames(config).attempts)
}

/**
 * Opens the index. If the disk is full, or if the index fails later, the index isn't ready, and is opened
 * again and again until it works. The rest of the process continues. Rejects if opening fails for another
 * reason than a full disk.
 */
export async function openLogIndex(options: LogIndexOptions): Promise<LogIndex> {
  const { config, metrics, log, parts } = options
  const { start, openQuery, where } = await openBackend(options)
  const kept = parts.add(
    new KeptIndex({
      start,
      read: (indexing) => readInto(indexing, options),
      onIndexed({ rows, unreadable }) {
        metrics.indexed.inc(rows)
        metrics.unreadable.inc(unreadable)
      },
      log,
    }),
  )
  await kept.start()
  const query = openQuery(() => kept.behindMs)
  log.info({ ...where, keptMs: config.attempts.retentionMs }, 'the delivery log is being indexed')
  return {
    query,
    collect() {
      const { behindMs } = kept
      metrics.behind.set(behindMs < 0 ? -1 : behindMs / 1_000)
      metrics.heldBytes.set(kept.heldBytes)
    },
    notReady: () => kept.troubles,
  }
}

type Backend = {
  readonly start: KeptIndexOptions['start']
  readonly openQuery: (behindMs: () => number) => LogQuery
  /** The place of the index, as fields of a log line. */
  readonly where: Readonly<Record<string, string>>
}

/** Opens the index in ClickHouse if ClickHouse is configured. Otherwise opens the index in files. */
async function openBackend({ config, log, parts }: LogIndexOptions): Promise<Backend> {
  const clickHouse = await openClickHouse(config, log)
  if (clickHouse === undefined) return filesOf(config, parts)
  // This function is added first, so it is called last: the connections close after the remaining records are
  // inserted.
  parts.defer(() => clickHouse.close())
  return {
    start: (events) => clickHouse.startIndexing(events, log),
    openQuery: (behindMs) => clickHouse.query(behindMs),
    where: { clickhouse: config.clickhouse.url ?? '' },
  }
}

function filesOf(config: Config, parts: Parts): Backend {
  const folder = indexFolder(config)
  return {
    start: (events, onFailed) => startFiles(config, folder, events, onFailed),
    openQuery(behindMs) {
      const query = openIndexQuery({ folder, behindMs })
      parts.defer(() => query.close())
      return query
    },
    where: { folder },
  }
}

/** Reads the topic into an index, after the last record that the index has. */
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

const otherLog =
  'the topic attempts was recreated or truncated: its present records are indexed beside the earlier ones'

async function startFiles(
  config: Config,
  folder: string,
  events: IndexingEvents,
  onFailed: (error: Error) => void,
): Promise<Indexing> {
  try {
    return await startIndexing({ ...events, folder, keptMs: config.attempts.retentionMs, onFailed })
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    if (why === folderInUse)
      throw new StartError(
        `The index of the delivery log in ${folder} is written by another process, such as \`sluice up\` or \`sluice log serve\`: stop that one, or set SLUICE_INDEX_FOLDER to another folder.`,
        { cause },
      )
    throw new StartError(
      `The index of the delivery log in ${folder} can not be opened (${why}): set SLUICE_INDEX_FOLDER to a folder that this user may write; a damaged one can be removed, and is made again from the topic.`,
      { cause },
    )
  }
}
