import { setTimeout as delay } from 'node:timers/promises'
import { Partitioners } from 'kafkajs'
import { partitionOf } from '../src/message/partitioner.ts'
import { plainClient } from '../test/support/plain-client.ts'
import type { SourceId } from './fleet.ts'
import { partitions } from './installation.ts'
import { type Ledger, messageOf } from './ledger.ts'

/** Writes to topics with a Kafka client, as some upstream services do. */
export type StraightWriter = {
  /**
   * Writes the records to a topic, and tries again until it succeeds. Resolves when all in-sync replicas have
   * the records. There is one send for each partition. The reason is that kafkajs loses records if a leader
   * moves during a send to several brokers: it leaves out the records for the former leader, and still
   * reports success.
   */
  write(topic: string, source: SourceId, records: readonly StraightRecord[]): Promise<void>
  stop(): Promise<void>
}

/** A record to write. Without `partition`, the key decides the partition. */
export type StraightRecord = { key: string | null; value: string; partition?: number }

const againMs = 200

export async function startStraightWriter({
  brokers,
  prefix,
  ledger,
}: {
  brokers: readonly string[]
  prefix: string
  ledger: Ledger
}): Promise<StraightWriter> {
  const producer = plainClient(brokers).producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()

  async function writeTo(
    topic: string,
    partition: number,
    source: SourceId,
    records: readonly StraightRecord[],
  ): Promise<void> {
    const messages = records.map(({ key, value }) => ({
      key,
      value,
      partition,
      headers: { 'source-id': source },
    }))
    for (;;) {
      try {
        await producer.send({ topic: `${prefix}${topic}`, messages, acks: -1 })
        return
      } catch {
        ledger.repeatedSends++
        await delay(againMs)
      }
    }
  }

  return {
    async write(topic, source, records) {
      const byPartition = Map.groupBy(
        records,
        ({ key, partition }) => partition ?? partitionOf(key ?? '', partitions),
      )
      await Promise.all([...byPartition].map(([partition, some]) => writeTo(topic, partition, source, some)))
    },
    stop: () => producer.disconnect(),
  }
}

const everyMs = 100
/**
 * The longest time for which missed events are made up, in seconds, after Kafka has accepted nothing for a
 * while.
 */
const mostBehindS = 3
const userCount = 500

/** Produces events of a source at an even rate until the signal. The users take turns. */
export async function produceEvents({
  writer,
  ledger,
  source,
  perSecond,
  signal,
}: {
  writer: StraightWriter
  ledger: Ledger
  source: SourceId
  perSecond: number
  signal: AbortSignal
}): Promise<void> {
  let made = 0
  let dueAtMs = performance.now()
  while (!signal.aborted) {
    const nowMs = performance.now()
    dueAtMs = Math.max(dueAtMs, nowMs - mostBehindS * 1_000)
    const due = Math.floor(((nowMs - dueAtMs) / 1_000) * perSecond)
    if (due > 0) {
      dueAtMs += (due / perSecond) * 1_000
      const first = made
      made += due
      const ids = Array.from({ length: due }, (_, index) => first + index)
      const records = ids.map((index) => eventRecord(source, index))
      const sentMs = Date.now()
      await writer.write('events', source, records)
      for (const index of ids) ledger.acknowledged.push({ id: idOf(source, index), source, sentMs })
    }
    await delay(everyMs)
  }
}

function eventRecord(source: SourceId, index: number): StraightRecord {
  const userId = userOf(index)
  return { key: userId, value: JSON.stringify(messageOf(idOf(source, index), userId, index)) }
}

function idOf(source: SourceId, index: number): string {
  return `${source}-${index}`
}

/** The number of messages of a burst of the source `sale`, and the time between two bursts. */
const burst = 120
const burstEveryMs = 12_000

/**
 * Produces bursts of the source `sale` until the signal. Each exceeds what its destination takes in a few
 * seconds, and is sent before the next one.
 */
export async function produceBursts({
  writer,
  ledger,
  signal,
}: {
  writer: StraightWriter
  ledger: Ledger
  signal: AbortSignal
}): Promise<void> {
  for (let first = 0; !signal.aborted; first += burst) {
    const ids = Array.from({ length: burst }, (_, index) => first + index)
    const sentMs = Date.now()
    await writer.write(
      'events',
      'sale',
      ids.map((index) => eventRecord('sale', index)),
    )
    for (const index of ids) ledger.acknowledged.push({ id: idOf('sale', index), source: 'sale', sentMs })
    await delay(burstEveryMs, undefined, { signal }).catch(() => undefined)
  }
}

/** Returns the unit and the number of a message of the source `sale`. */
export function readSaleId(id: string): { unit: number; number: number } {
  const number = Number(id.slice('sale-'.length))
  return { unit: partitionOf(userOf(number), partitions), number }
}

function userOf(index: number): string {
  return `user-${index % userCount}`
}
