import type { Kafka, RequestEvent } from 'kafkajs'
import { type ClusterView, createClusterView } from '../../../src/kafka/cluster/cluster-view.ts'
import type { FetchedBatch, FetchHandle, FetchOrder } from '../../../src/kafka/fetch/fetch-handle.ts'
import { createFetcher, type Fetcher } from '../../../src/kafka/fetch/fetcher.ts'
import type { Truncation } from '../../../src/kafka/fetch/positions.ts'
import { workerKafka } from '../../support/worker-kafka.ts'

/** A reader of one partition, and everything that was reported to it. */
export type Reader = {
  readonly handle: FetchHandle
  readonly texts: string[]
  readonly batches: FetchedBatch[]
  readonly lost: [from: number, to: number][]
  readonly truncations: Truncation[]
}

export type Line = { level: string; fields: Record<string, unknown> }

/** A fetcher with its view of the cluster, and the lines that both have logged. */
export type Reading = {
  readonly view: ClusterView
  readonly fetcher: Fetcher
  readonly lines: Line[]
  /** Starts a reader. By default, it reads partition 0 of the first topic from the beginning. */
  read(order?: Partial<FetchOrder>): Reader
  stop(): Promise<void>
}

export async function beginReading(
  topics: readonly string[],
  { kafka = workerKafka(), partitions }: { kafka?: ReturnType<typeof workerKafka>; partitions?: number } = {},
): Promise<Reading> {
  const lines: Line[] = []
  const note = (level: string) => (fields: object) => void lines.push({ level, fields: { ...fields } })
  const log = { info: note('info'), warn: note('warn'), error: note('error') }
  const view = createClusterView({ kafka, topics, partitions, log, refreshEveryMs: 1_000 })
  await view.connect()
  const fetcher = createFetcher({ view, longestWaitMs: () => 250, log })
  return {
    view,
    fetcher,
    lines,
    read(order = {}) {
      const told = {
        texts: new Array<string>(),
        batches: new Array<FetchedBatch>(),
        lost: new Array<[number, number]>(),
        truncations: new Array<Truncation>(),
      }
      const handle = fetcher.open({
        topic: topics[0] ?? '',
        partition: 0,
        offset: 0,
        on: {
          batch(batch) {
            told.batches.push(batch)
            told.texts.push(...batch.records.map(({ value, unreadable }) => unreadable ?? String(value)))
          },
          lost: (from, to) => void told.lost.push([from, to]),
          truncated: (truncation) => void told.truncations.push(truncation),
        },
        ...order,
      })
      return { ...told, handle }
    },
    async stop() {
      await fetcher.stop()
      await view.close()
    },
  }
}

/** Returns records whose key and value are the numbers from `from` to `to`, without `to`. */
export function numbered(from: number, to: number, partition = 0) {
  return numbers(from, to).map((value) => ({ partition, key: value, value }))
}

export function numbers(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, index) => `${from + index}`)
}

/** `heldMs`: the time until the answer came, in milliseconds. */
export type Fetch = { atMs: number; heldMs: number; answerBytes: number }

/** Returns a client, and a list that gets each fetch of its consumers. */
export function watchedKafka(): { kafka: Kafka; fetches: Fetch[] } {
  const kafka = workerKafka()
  const fetches: Fetch[] = []
  const make = kafka.consumer.bind(kafka)
  kafka.consumer = (config) => {
    const consumer = make(config)
    consumer.on(consumer.events.REQUEST, ({ payload: { apiName, duration, size } }: RequestEvent) => {
      if (apiName === 'Fetch') fetches.push({ atMs: Date.now(), heldMs: duration, answerBytes: size })
    })
    return consumer
  }
  return { kafka, fetches }
}
