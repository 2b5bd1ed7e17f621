import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Admin } from 'kafkajs'
import { stringify } from 'yaml'
import { startKafka } from '../../src/development/kafka.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { sourceId } from '../support/messages.ts'
import { plainKafka } from '../support/plain-kafka.ts'
import { preload } from '../support/preload.ts'
import { type Receiver, startReceiver } from '../support/receiver-process.ts'
import { startSender } from '../support/sender-process.ts'

export const partitions = 6
export const inFlight = 256
export const sharedSecret = 'a secret of thirty-two characters'
export const sluiceMain = resolve(import.meta.dirname, '../../src/main.ts')

/** What all senders of the benchmark have in common. */
export type Setting = {
  brokers: readonly string[]
  topic: string
  messages: number
  receiver: Receiver
  /** For the output of senders. */
  folder: string
  /** The `SLUICE_…` variables of a worker, without its group. */
  variables: Record<string, string>
  /** Records that workers have written: retries and dead letters. */
  countWritten(): Promise<number>
  close(): Promise<void>
}

/** Starts Kafka (or attaches to `KAFKA_BROKERS`) and the receiver, makes the topics and fills one. */
export async function openSetting(messages: number, report: (line: string) => void): Promise<Setting> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const receiver = await startReceiver()
  const kafka = await startKafka({ heapMb: 1024, report })
  const prefix = `bench-${randomBytes(3).toString('hex')}.`
  const { brokers } = kafka
  const close = async (): Promise<void> => {
    if (kafka.way === 'configured') await removeTopics(brokers, prefix)
    await kafka.stop()
    await receiver.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const variables = workerVariables({ brokers, prefix, folder, origin: receiver.origin })
    await applyTopics(folder, variables)
    const topic = `${prefix}events`
    report(`writing ${messages} messages to ${topic}`)
    await preload(brokers, topic, messages)
    const countWritten = (): Promise<number> => countRecords(brokers, prefix, topic)
    return { brokers, topic, messages, receiver, folder, variables, countWritten, close }
  } catch (error) {
    await close()
    throw error
  }
}

type Place = { brokers: readonly string[]; prefix: string; folder: string; origin: string }

function workerVariables({ brokers, prefix, folder, origin }: Place): Record<string, string> {
  const catalogFile = join(folder, 'catalog.yaml')
  const hooks = [{ url: `${origin}/hook` }]
  const destination = { id: 'crm', sources: [sourceId], sharedSecret, maxInFlight: inFlight, hooks }
  writeFileSync(catalogFile, stringify({ sources: [{ id: sourceId }], destinations: [destination] }))
  return {
    SLUICE_KAFKA_BROKERS: brokers.join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: prefix,
    SLUICE_TOPICS_PARTITIONS: String(partitions),
    SLUICE_TOPICS_DEVELOPMENT: 'true',
    SLUICE_CATALOG_FILE: catalogFile,
    SLUICE_DELIVERY_MAX_IN_FLIGHT: String(inFlight),
    // One lane gets more than its share here: it may, and a slow machine is not to park what it is too slow for.
    SLUICE_DELIVERY_LANE_PATIENCE: '1m',
    SLUICE_DELIVERY_LANE_WAIT: '10m',
    SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.0/8',
    SLUICE_HTTP_HOST: '127.0.0.1',
    SLUICE_HTTP_PORT: '0',
  }
}

async function applyTopics(folder: string, variables: Record<string, string>): Promise<void> {
  const apply = startSender([sluiceMain, 'topics', 'apply'], {
    outputFile: join(folder, 'topics.log'),
    variables,
  })
  const exitCode = await apply.ended
  if (exitCode !== 0) throw new BenchmarkFailure(`sluice topics apply failed:\n${apply.output()}`)
}

async function countRecords(brokers: readonly string[], prefix: string, except: string): Promise<number> {
  return withAdmin(brokers, async (admin) => {
    let count = 0
    for (const topic of await topicsOf(admin, prefix)) {
      if (topic === except) continue
      for (const { low, high } of await admin.fetchTopicOffsets(topic)) count += Number(high) - Number(low)
    }
    return count
  })
}

async function removeTopics(brokers: readonly string[], prefix: string): Promise<void> {
  await withAdmin(brokers, async (admin) => admin.deleteTopics({ topics: await topicsOf(admin, prefix) }))
}

async function topicsOf(admin: Admin, prefix: string): Promise<string[]> {
  return (await admin.listTopics()).filter((topic) => topic.startsWith(prefix))
}

async function withAdmin<T>(brokers: readonly string[], work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = plainKafka(brokers).admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}
