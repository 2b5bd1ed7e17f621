import { Partitioners } from 'kafkajs'
import { onTestFinished } from 'vitest'
import { newIds, type Scene, setScene, unhurried } from '../e2e/scene.ts'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { type CountingReceiver, startCountingReceiver } from './counting-receiver.ts'
import { otherProgram, testKafka } from './kafka.ts'
import { until } from './until.ts'
import { type LogLine, runSluice, type SluiceProcess, startSluice } from './worker-process.ts'

type Admin = Parameters<Parameters<typeof withAdmin>[1]>[0]

/**
 * One source, one destination, and topics and a group that only the calling test uses. All of these end with
 * the test.
 */
export type Shop = {
  scene: Scene
  receiver: CountingReceiver
  /** The path of the destination at the receiver. */
  path: string
  /** The full name of a topic. */
  topic(name: string): string
  /**
   * Produces messages to one partition of `events`, and resolves with their messageIds. Without `acks`, it
   * resolves when all in-sync replicas have the messages.
   */
  send(partition: number, count: number, options?: { acks?: number }): Promise<string[]>
  /** Resolves with the ids of those messages that have not arrived. */
  missing(ids: readonly string[]): Promise<string[]>
  untilArrived(ids: readonly string[], options?: { timeoutMs?: number }): Promise<void>
  start(options?: { variables?: Record<string, string>; isUnready?: boolean }): Promise<SluiceProcess>
  /** Runs `topics apply` once more. */
  applyTopics(variables?: Record<string, string>): Promise<void>
  admin<T>(work: (admin: Admin) => Promise<T>): Promise<T>
}

export type ShopOptions = {
  brokers?: readonly string[]
  variables?: Record<string, string>
}

const path = '/crm'

/**
 * Opens a shop. Its settings keep Sluice from dropping repeats, so the receiver sees each delivery. Sluice
 * parks only deliveries that fail.
 */
export async function openShop({ brokers = testKafka(), variables = {} }: ShopOptions = {}): Promise<Shop> {
  const receiver = await startCountingReceiver()
  onTestFinished(() => receiver.stop())
  const scene = await setScene({
    brokers,
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url(path) }] }],
    },
    variables: {
      ...unhurried,
      SLUICE_REPEATS_WINDOW: '0s',
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_LOG_ATTEMPTS: 'false',
      ...variables,
    },
  })
  onTestFinished(() => scene.close())
  async function missing(ids: readonly string[]): Promise<string[]> {
    const arrivals = await receiver.arrivals(path)
    return ids.filter((id) => !arrivals.has(id))
  }
  return {
    scene,
    receiver,
    path,
    topic: (name) => `${scene.prefix}${name}`,
    send: (partition, count, { acks = -1 } = {}) =>
      sendTracks(brokers, { topic: `${scene.prefix}events`, partition, count, acks }),
    missing,
    async untilArrived(ids, options) {
      await until('all have arrived', async () => (await missing(ids)).length === 0, options)
    },
    async start({ variables: own = {}, ...options } = {}) {
      const worker = await startSluice({ ...scene.variables, ...own }, options)
      onTestFinished(async () => {
        if (worker.isRunning) await worker.kill()
      })
      return worker
    },
    async applyTopics(own = {}) {
      await runSluice(['topics', 'apply'], { ...scene.variables, ...own })
    },
    admin: (work) => withAdmin(otherProgram(brokers), work),
  }
}

type Tracks = { topic: string; partition: number; count: number; acks: number }

async function sendTracks(
  brokers: readonly string[],
  { topic, partition, count, acks }: Tracks,
): Promise<string[]> {
  const producer = otherProgram(brokers).producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const ids = newIds(count)
  try {
    const messages = ids.map((messageId) => ({
      partition,
      key: `user-${messageId}`,
      value: JSON.stringify({
        type: 'track',
        messageId,
        userId: `user-${messageId}`,
        event: 'Order Completed',
        properties: { order: messageId },
      }),
      headers: { 'source-id': 'shop' },
    }))
    await producer.send({ topic, messages, acks })
    return ids
  } finally {
    await producer.disconnect()
  }
}

/** Returns the warnings and errors with these fields that a process has logged. */
export function troubleOf({ log }: SluiceProcess, fields: Record<string, unknown>): LogLine[] {
  const wanted = Object.entries(fields)
  return log.filter(
    (line) =>
      (line.level === 'warn' || line.level === 'error') &&
      wanted.every(([name, value]) => line[name] === value),
  )
}

/** Returns how often a process has joined its group. */
export function joinsOf({ log }: SluiceProcess): number {
  return log.filter(({ msg }) => msg === 'joined the group').length
}

/** Returns the answer of `/readyz` or `/livez`. */
export async function probe(
  { httpPort }: SluiceProcess,
  which: '/readyz' | '/livez',
): Promise<{ status: number; text: string }> {
  const response = await fetch(`http://127.0.0.1:${httpPort}${which}`)
  return { status: response.status, text: await response.text() }
}
