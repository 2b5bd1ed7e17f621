import { type Message, Partitioners } from 'kafkajs'
import { monotonicUs } from './clock.ts'
import { plainKafka } from './plain-kafka.ts'
import type { Command, Plan, Produced } from './producer-process.ts'
import { stampedMessage } from './stamped-messages.ts'
import { percentile } from './statistics.ts'
import { destinationOf, dueUs, messagesOf, sourceIdOf, type Stream } from './streams.ts'

/**
 * Runs as a process (`producer.ts PLAN`), and produces messages by the clock, as an open loop. Each message
 * is produced when it is due, without waiting for the answers to earlier messages.
 */

const tickMs = 5
/** The most messages of a request. After a delay many are due at once, and a broker refuses a batch over 1 MiB. */
const mostAtOnce = 500

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by producer-process.ts
const plan = JSON.parse(process.argv[2] ?? '') as Plan
const producer = plainKafka(plan.brokers).producer({ createPartitioner: Partitioners.DefaultPartitioner })

const cursors = plan.streams.map((stream) => ({ stream, next: 0, end: messagesOf(stream) }))
const lateMs: number[] = []
const errors = new Set<string>()
let produced = 0
let acknowledged = 0

function takeDue(stream: Stream, from: number, end: number, elapsedUs: number, batch: Message[]): number {
  let index = from
  for (; index < end; index++) {
    const atUs = dueUs(stream, index)
    if (atUs > elapsedUs) break
    const { key, value } = stampedMessage(produced++, startUs + elapsedUs)
    if (atUs >= plan.fromS * 1_000_000) lateMs.push((elapsedUs - atUs) / 1_000)
    batch.push({ key, value, headers: { 'source-id': sourceIdOf(destinationOf(stream, index)) } })
  }
  return index
}

async function send(messages: Message[]): Promise<void> {
  try {
    await producer.send({ topic: plan.topic, messages, acks: -1 })
    acknowledged += messages.length
  } catch (error) {
    errors.add(error instanceof Error ? error.message : String(error))
  }
}

const sends: Promise<void>[] = []
let startUs = 0

function tick(): void {
  const batch: Message[] = []
  const elapsedUs = monotonicUs() - startUs
  for (const cursor of cursors) {
    cursor.next = takeDue(cursor.stream, cursor.next, cursor.end, elapsedUs, batch)
  }
  for (let at = 0; at < batch.length; at += mostAtOnce) sends.push(send(batch.slice(at, at + mostAtOnce)))
  if (cursors.every(({ next, end }) => next === end)) void finish()
  else setTimeout(tick, tickMs)
}

async function finish(): Promise<void> {
  await Promise.all(sends)
  const sorted = lateMs.toSorted((a, b) => a - b)
  const late = { p99: percentile(sorted, 0.99), max: percentile(sorted, 1) }
  const result: Produced = { messages: produced, acknowledged, late, errors: [...errors] }
  process.send?.(result)
}

process.on('message', ({ atUs }: Command) => {
  startUs = atUs
  setTimeout(tick, Math.max(0, (atUs - monotonicUs()) / 1_000))
})
process.on('disconnect', () => process.exit(0))
await producer.connect()
// Makes the templates of all messages before the clock runs.
for (let index = 0; index < 1_024; index++) stampedMessage(index, 0)
process.send?.('connected')
