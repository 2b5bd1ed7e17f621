import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startKafka } from '../../src/development/kafka.ts'
import { writeFleet } from '../support/fleet.ts'
import { messageAt, userIdOf } from '../support/messages.ts'
import { preload } from '../support/preload.ts'
import { type Receiver, startReceiver } from '../support/receiver-process.ts'
import { sourceIdOf } from '../support/streams.ts'
import { createCertificates } from '../support/tls.ts'
import { applyTopics, countRecords, removeTopics } from '../support/topics.ts'
import { workerVariables } from '../support/worker-variables.ts'

export const inFlight = 256
/** The number of destinations. The messages go to them in turn. */
export const destinations = 100

/** The receiver, the folder and the variables of one sender. */
export type Place = {
  receiver: Receiver
  /** A folder for the output and the state of the sender. */
  folder: string
  /** The `SLUICE_…` variables of a worker, without its group. */
  variables: Record<string, string>
  /** The variables that any sender needs to trust the receiver. */
  trust: Record<string, string>
}

export type PlaceOptions = {
  /** True if the catalog has the source `sluice`. */
  hasNotices?: boolean
  /** Further settings of each destination. */
  settings?: object
  /** After how many milliseconds the receiver answers. */
  answerAfterMs?: number
}

/** The environment that all senders of the benchmark share. */
export type Setting = {
  brokers: readonly string[]
  topic: string
  messages: number
  /** Opens a separate place for a sender. */
  openPlace(name: string, options?: PlaceOptions): Promise<Place>
  /** Returns the number of retries and dead letters that workers have written. */
  countWritten(): Promise<number>
  close(): Promise<void>
}

/**
 * Starts Kafka, or attaches to `KAFKA_BROKERS`, makes the topics, and writes the messages to the topic of
 * events. With `tls` the receivers use TLS.
 */
export async function openSetting({
  messages,
  tls,
  count = destinations,
  report,
}: {
  messages: number
  tls: boolean
  /** The number of destinations. */
  count?: number
  report: (line: string) => void
}): Promise<Setting> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const kafka = await startKafka({ heapMb: 1024, report })
  const prefix = `bench-${randomBytes(3).toString('hex')}.`
  const { brokers } = kafka
  const certificates = tls ? createCertificates(folder) : undefined
  const receivers: Receiver[] = []
  const openPlace: Setting['openPlace'] = async (name, options = {}) => {
    const receiver = await startReceiver(certificates, options.answerAfterMs)
    receivers.push(receiver)
    const own = join(folder, name)
    mkdirSync(own)
    return {
      receiver,
      folder: own,
      variables: variablesOf({ brokers, prefix, folder: own, origin: receiver.origin, count, ...options }),
      trust: certificates?.variables ?? {},
    }
  }
  const close = async (): Promise<void> => {
    if (kafka.way === 'configured') await removeTopics(brokers, prefix)
    await kafka.stop()
    await Promise.all(receivers.map((receiver) => receiver.stop()))
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await applyTopics(folder, workerVariables({ brokers, prefix, catalogFile: join(folder, 'catalog.yaml') }))
    const topic = `${prefix}events`
    report(`writing ${messages} messages to ${topic}`)
    await preload(brokers, topic, messages, (index) => ({
      key: userIdOf(index),
      value: messageAt(index),
      headers: { 'source-id': sourceIdOf(index % count) },
    }))
    // Other topics contain records that a worker writes about its own state, for example about first syncs.
    const countWritten = (): Promise<number> =>
      countRecords(brokers, prefix, (name) => /^(retry\.|dead-letters$)/.test(name.slice(prefix.length)))
    return { brokers, topic, messages, openPlace, countWritten, close }
  } catch (error) {
    await close()
    throw error
  }
}

type Origin = {
  brokers: readonly string[]
  prefix: string
  folder: string
  origin: string
  count: number
} & PlaceOptions

function variablesOf({
  brokers,
  prefix,
  folder,
  origin,
  count,
  hasNotices = false,
  settings = {},
}: Origin): Record<string, string> {
  const catalogFile = join(folder, 'catalog.yaml')
  writeFleet(catalogFile, {
    count,
    urlOf: (number) => `${origin}/hook/${number}`,
    settings: new Map(Array.from({ length: count }, (_, number) => [number, settings])),
    otherSources: hasNotices ? [{ id: 'sluice' }] : [],
  })
  return {
    ...workerVariables({ brokers, prefix, catalogFile }),
    SLUICE_DELIVERY_MAX_IN_FLIGHT: String(inFlight),
    // A worker on a slow machine must not park messages. A suspended worker doesn't read its answers.
    SLUICE_DELIVERY_LANE_PATIENCE: '1m',
    SLUICE_DELIVERY_LANE_WAIT: '10m',
    SLUICE_DELIVERY_TIMEOUT: '1m',
    SLUICE_KAFKA_SESSION_TIMEOUT: '2m',
  }
}
