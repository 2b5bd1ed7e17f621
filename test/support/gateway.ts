import { randomPrefix, readAll, testKafka } from './kafka.ts'
import { post, readJson, type Reply } from './post.ts'
import { applyTopics, type SluiceProcess, startSluice, writeCatalog } from './worker-process.ts'

export { basic, post, type Reply } from './post.ts'

/** A source as in the catalog file. */
export type GatewaySource = {
  id: string
  kind?: 'events' | 'audiences'
  enabled?: boolean
  writeKeys?: readonly string[]
  serverKeys?: readonly string[]
  maxPerSecond?: number
}

/** A record of a topic. `value` is its text, parsed as JSON. */
export type WrittenRecord = {
  partition: number
  key: string | null
  headers: Record<string, string>
  text: string
  value: Record<string, unknown>
}

/** A gateway process, and the topics that only this gateway uses. */
export type TestGateway = {
  prefix: string
  process: SluiceProcess
  /** `http://127.0.0.1:PORT` */
  origin: string
  /** The settings for another process with the same topics and the same catalog. */
  variables: Record<string, string>
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Reply>
  /** Reads a topic to its end. The topic is named without its prefix. */
  read(topic: string): Promise<WrittenRecord[]>
  readiness(): Promise<{ status: number; text: string }>
  rewriteCatalog(sources: readonly GatewaySource[]): void
  stop(): Promise<void>
}

export async function startGateway({
  sources = [{ id: 'shop', writeKeys: ['KEY'] }],
  destinations = [],
  variables: own = {},
  brokers = testKafka(),
}: {
  sources?: readonly GatewaySource[]
  destinations?: readonly object[]
  variables?: Record<string, string>
  brokers?: readonly string[]
} = {}): Promise<TestGateway> {
  const prefix = randomPrefix()
  const catalog = writeCatalog({ sources: [...sources], destinations: [...destinations] })
  const variables = {
    SLUICE_KAFKA_BROKERS: brokers.join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: prefix,
    SLUICE_TOPICS_PARTITIONS: '3',
    SLUICE_CATALOG_FILE: catalog.path,
    ...own,
  }
  await applyTopics(variables)
  const process = await startSluice(variables, { role: 'gateway' })
  const origin = `http://127.0.0.1:${process.gatewayPort}`
  return {
    prefix,
    process,
    origin,
    variables,
    post: (path, body, headers) => post(`${origin}${path}`, body, headers),
    read: async (topic) => (await readAll(prefix + topic)).map(written),
    async readiness() {
      const response = await fetch(`http://127.0.0.1:${process.httpPort}/readyz`)
      return { status: response.status, text: await response.text() }
    },
    rewriteCatalog: (next) => catalog.rewrite({ sources: [...next], destinations: [] }),
    async stop() {
      if (process.isRunning) await process.kill()
      catalog.remove()
    },
  }
}

function written(record: Awaited<ReturnType<typeof readAll>>[number]): WrittenRecord {
  const { partition, key, headers, value } = record
  const text = String(value)
  return { partition, key, headers, text, value: readJson(text) }
}
