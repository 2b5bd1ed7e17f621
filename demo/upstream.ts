import { setTimeout as sleep } from 'node:timers/promises'
import type { Producer } from 'kafkajs'
import { oneMore, type PlannedRecord } from './messages.ts'
import { type DestinationId, destinations } from './script.ts'

/** Services that write to the events topic, as they would without Sluice in mind: a key, a value, a header. */
export type Upstream = {
  /** Records that Kafka has acknowledged. */
  readonly written: number
  /** Messages among them that a destination must get. */
  sentTo(id: DestinationId): number
  /** Writes the records, each at its time; resolves when all are acknowledged. */
  write(records: readonly PlannedRecord[], signal: AbortSignal): Promise<void>
  /** Writes one more each second, until the signal. */
  trickle(signal: AbortSignal): Promise<void>
}

const tickMs = 100
const trickleMs = 1_000

export function createUpstream(producer: Producer, topic: string): Upstream {
  const sent = new Map<DestinationId, number>()
  let written = 0

  async function send(records: readonly PlannedRecord[]): Promise<void> {
    const messages = records.map(({ key, value, sourceId }) => ({
      key,
      value,
      headers: sourceId === undefined ? {} : { 'source-id': sourceId },
    }))
    await producer.send({ topic, messages, acks: -1 })
    written += records.length
    for (const { fate } of records) {
      if (fate.kind !== 'routed') continue
      for (const { id, sources } of destinations) {
        if (sources.some((source) => source === fate.sourceId)) sent.set(id, (sent.get(id) ?? 0) + 1)
      }
    }
  }

  return {
    get written() {
      return written
    },
    sentTo: (id) => sent.get(id) ?? 0,
    async write(records, signal) {
      const startedMs = performance.now()
      for (let next = 0; next < records.length;) {
        const elapsedMs = performance.now() - startedMs
        const due = records.slice(next).findIndex(({ atMs }) => atMs > elapsedMs)
        const end = due === -1 ? records.length : next + due
        if (end > next) await send(records.slice(next, end))
        next = end
        await sleep(tickMs, undefined, { signal })
      }
    },
    async trickle(signal) {
      for (let index = 0; ; index++) {
        await send([oneMore(index)])
        await sleep(trickleMs, undefined, { signal })
      }
    },
  }
}
