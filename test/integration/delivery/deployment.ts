import { type CompressionTypes, type Message } from 'kafkajs'
import { produce, randomPrefix, readAll, type SeenRecord, testKafka } from '../../support/kafka.ts'
import {
  applyTopics,
  type CatalogData,
  type SluiceProcess,
  startSluice,
  writeCatalog,
} from '../../support/worker-process.ts'

/** A destination in the form that the catalog file has. */
export type DestinationEntry = {
  id: string
  sources: readonly string[]
  hooks: readonly {
    url: string
    id?: string
    headers?: Record<string, string>
    login?: object
    tls?: object
  }[]
  state?: 'on' | 'off' | 'paused'
  filter?: { types?: readonly string[]; events?: readonly string[] }
  sharedSecret?: string
  nextSharedSecret?: string
  signing?: { standardWebhooks?: boolean }
  strategy?: 'all' | 'failover'
  maxInFlight?: number
  timeout?: string
  mappings?: readonly object[]
  batch?: { maxMessages?: number; maxBytes?: number; maxWait?: string; format?: 'json' | 'ndjson' }
}

export type SourceEntry = { id: string; enabled?: boolean; kind?: 'audiences' }

/** The topics and the catalog that only one test file uses, and a worker that is ready. */
export type Deployment = {
  prefix: string
  /** The settings of the worker, with which a test can run commands. */
  settings: Record<string, string>
  readonly worker: SluiceProcess
  /** Produces to `events`, as an upstream service does. */
  send(
    sourceId: string,
    messages: readonly SentMessage[],
    options?: { compression?: CompressionTypes },
  ): Promise<void>
  /**
   * Replaces the destinations in the catalog, however many are removed. The sources of the catalog are those that the destinations
   * name, and `otherSources`.
   */
  recatalog(destinations: readonly DestinationEntry[]): void
  /** Replaces the content of the catalog file. */
  rewriteCatalog(data: CatalogData): void
  /**
   * Reads a topic to its end. `topic` is the name without the prefix. If `count` is given, waits until the
   * topic has this many records.
   */
  read(topic: string, count?: number): Promise<SeenRecord[]>
  /**
   * Starts another worker in place of one that has ended. `program`: the program to run, if it isn't the
   * program under test.
   */
  restart(program?: string): Promise<void>
  stop(): Promise<void>
}

/** A message to send. If `value` is text or bytes, it is sent as it is. An object is sent as JSON. */
export type SentMessage = { key?: string; value: object | string | Buffer | null; partition?: number }

export async function deploy({
  destinations,
  otherSources = [],
  variables = {},
  program,
}: {
  destinations: readonly DestinationEntry[]
  otherSources?: readonly SourceEntry[]
  variables?: Record<string, string>
  /** The program that the first worker runs, if it isn't the program under test. */
  program?: string
}): Promise<Deployment> {
  const prefix = randomPrefix()
  const catalog = writeCatalog(catalogOf(destinations, otherSources))
  const settings = {
    SLUICE_KAFKA_BROKERS: testKafka().join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: prefix,
    SLUICE_KAFKA_GROUP_ID: `${prefix}workers`,
    SLUICE_TOPICS_PARTITIONS: '3',
    SLUICE_CATALOG_FILE: catalog.path,
    ...variables,
  }
  await applyTopics(settings)
  const start = (by?: string) => startSluice(settings, by === undefined ? {} : { program: by })
  let worker = await start(program)
  return {
    prefix,
    settings,
    get worker() {
      return worker
    },
    send: (sourceId, messages, { compression } = {}) =>
      produce(
        `${prefix}events`,
        messages.map((message) => toRecord(message, sourceId)),
        compression === undefined ? {} : { compression },
      ),
    recatalog: (next) => catalog.rewrite(withCounts(catalogOf(next, otherSources))),
    rewriteCatalog: (data) => catalog.rewrite(data),
    read: (topic, count) => readAll(prefix + topic, count === undefined ? {} : { count }),
    async restart(next) {
      worker = await start(next)
    },
    async stop() {
      await worker.terminate()
      catalog.remove()
    },
  }
}

function catalogOf(
  destinations: readonly DestinationEntry[],
  otherSources: readonly SourceEntry[],
): CatalogData {
  const ids = new Set(destinations.flatMap(({ sources }) => sources))
  for (const { id } of otherSources) ids.delete(id)
  return { sources: [...[...ids].map((id) => ({ id })), ...otherSources], destinations: [...destinations] }
}

/** Adds the numbers of entries, with which an edit may remove as many as it wants. */
function withCounts(data: CatalogData): CatalogData {
  return { ...data, expect: { sources: data.sources.length, destinations: data.destinations.length } }
}

function toRecord({ key, value, partition }: SentMessage, sourceId: string): Message {
  const isPlain = value === null || typeof value === 'string' || Buffer.isBuffer(value)
  return {
    headers: { 'source-id': sourceId },
    key: key ?? null,
    value: isPlain ? value : JSON.stringify(value),
    ...(partition !== undefined && { partition }),
  }
}
