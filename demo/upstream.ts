import { setTimeout as sleep } from 'node:timers/promises'
import type { Producer } from 'kafkajs'
import { oneMore, type PlannedRecord, type ToTopic } from './messages.ts'
import { type DestinationId, destinations, type SourceId } from './script.ts'
import type { SegmentClient } from './segment.ts'

/**
 * Upstream services that contain no code of Sluice. Some send to the gateway with Segment's client. The
 * others write records with a key, a value and a header to the events topic.
 */
export type Upstream = {
  /** The number of records that Kafka has acknowledged, to the service itself or through the gateway. */
  readonly written: number
  /** Returns the number of acknowledged messages that a destination must get. */
  sentTo(id: DestinationId): number
  /** Sends all records, each at its time. Resolves when all are acknowledged. */
  write(records: readonly PlannedRecord[], signal: AbortSignal): Promise<void>
  /** Sends a message each second, until the signal aborts. */
  trickle(signal: AbortSignal): Promise<void>
}

const tickMs = 100
const trickleMs = 1_000

export function createUpstream(options: {
  producer: Producer
  topic: string
  client: (sourceId: SourceId) => SegmentClient
}): Upstream {
  const { producer, topic, client } = options
  const sent = new Map<DestinationId, number>()
  let written = 0
  /** The number of sends that have begun and are neither acknowledged nor given up. */
  let open = 0
  const failures: unknown[] = []

  async function begin(record: PlannedRecord): Promise<void> {
    open++
    try {
      await send(record)
    } catch (error) {
      failures.push(error)
    } finally {
      open--
    }
  }

  /** Waits. Rejects after a failed send and at the signal. Sends under way may take longer than that. */
  async function pause(ms: number, signal: AbortSignal): Promise<void> {
    if (failures.length > 0) throw failures[0]
    await sleep(ms, undefined, { signal })
  }

  async function send(record: PlannedRecord): Promise<void> {
    if (record.way === 'gateway') await client(record.sourceId).send(record.message)
    else await produce(record)
    written++
    const { fate } = record
    if (fate.kind !== 'routed') return
    for (const { id, sources } of destinations) {
      if (sources.some((source) => source === fate.sourceId)) sent.set(id, (sent.get(id) ?? 0) + 1)
    }
  }

  async function produce({ key, value, sourceId }: ToTopic): Promise<void> {
    const headers = sourceId === undefined ? {} : { 'source-id': sourceId }
    await producer.send({ topic, messages: [{ key, value, headers }], acks: -1 })
  }

  return {
    get written() {
      return written
    },
    sentTo: (id) => sent.get(id) ?? 0,
    async write(records, signal) {
      const startedMs = performance.now()
      for (let next = 0; next < records.length || open > 0;) {
        const elapsedMs = performance.now() - startedMs
        const due = records.slice(next).findIndex(({ atMs }) => atMs > elapsedMs)
        const end = due === -1 ? records.length : next + due
        for (const record of records.slice(next, end)) void begin(record)
        next = end
        await pause(tickMs, signal)
      }
    },
    async trickle(signal) {
      for (let index = 0; ; index++) {
        void begin(oneMore(index))
        await pause(trickleMs, signal)
      }
    },
  }
}
