import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { type RunningKafka, startKafka } from '../src/development/kafka.ts'
import { type AudienceUpstream, createAudience } from './audience.ts'
import { writeCatalog } from './catalog.ts'
import { type Customers, startCustomers } from './customers.ts'
import { makeRunFolder, shownPath } from './folder.ts'
import { createClient, removeTopics, startProducer } from './kafka.ts'
import type { Lifetime } from './lifetime.ts'
import { ladder, type SourceId, writeKeyOf } from './script.ts'
import { createSegmentClient, type SegmentClient } from './segment.ts'
import { loopback, sluiceSettings } from './settings.ts'
import { type Role, runSluice, type Settings, type SluiceProcess, spawnRole } from './sluice.ts'
import { createUpstream, type Upstream } from './upstream.ts'

/** All parts of the demo that are started before the first message. */
export type Stage = {
  brokers: readonly string[]
  client: Kafka
  topicPrefix: string
  groupId: string
  /** The topics whose records the worker's group consumes. `dead-letters`, for example, isn't among them. */
  consumedTopics: readonly string[]
  catalogFile: string
  /** The settings of every process of Sluice. */
  settings: Settings
  customers: Customers
  worker: SluiceProcess
  gateway: SluiceProcess
  upstream: Upstream
  audience: AudienceUpstream
  /** Starts the clock of `elapsedMs`. */
  startClock(): void
  elapsedMs(): number
}

const kafkaStopMs = 10_000

/**
 * Starts Kafka, the customers' servers, a worker, a gateway and an index of the delivery log, and prints a
 * line about each. All started parts stop with `lifetime`.
 */
export async function setStage(lifetime: Lifetime): Promise<Stage> {
  let startedMs = Number.NaN
  const elapsedMs = (): number => (Number.isNaN(startedMs) ? 0 : performance.now() - startedMs)

  const kafka = await startKafkaFor(lifetime)
  const { brokers } = kafka
  const client = createClient(brokers)
  const isOurs = kafka.way !== 'configured'
  const topicPrefix = isOurs ? 'sluice.' : `sluice-demo-${randomBytes(3).toString('hex')}.`
  const groupId = `${topicPrefix}demo`
  if (!isOurs) lifetime.onStop('removing the topics', () => removeTopics(client, topicPrefix, groupId))

  const folder = await makeRunFolder()
  const catalogFile = join(folder, 'catalog.yaml')
  const [stateFolder, indexFolder] = [join(folder, 'state'), join(folder, 'log')]
  lifetime.onStop('what the processes keep', async () => {
    for (const kept of [stateFolder, indexFolder]) await rm(kept, { recursive: true, force: true })
  })
  const settings = sluiceSettings({ brokers, topicPrefix, groupId, catalogFile, stateFolder, indexFolder })
  const topics = await applyTopics(settings, topicPrefix, lifetime)

  const customers = await startCustomersIn(catalogFile, elapsedMs, lifetime)
  const { worker, gateway } = await startRoles(settings, folder, lifetime)
  const producer = await startProducer(client)
  lifetime.onStop('upstream services', () => producer.disconnect())
  return {
    brokers,
    client,
    topicPrefix,
    groupId,
    consumedTopics: topics.filter(
      (topic) =>
        !/(dead-letters|backfills|attempts|replay-jobs|notices|health|waiting-marks|lending)$/.test(topic),
    ),
    catalogFile,
    settings,
    customers,
    worker,
    gateway,
    upstream: createUpstream({
      producer,
      topic: `${topicPrefix}events`,
      client: segmentClients(gateway.gatewayUrl, lifetime),
    }),
    audience: createAudience({ producer, topic: `${topicPrefix}audience-changes`, settings, folder }),
    startClock() {
      startedMs = performance.now()
    },
    elapsedMs,
  }
}

/** Prints one line about a part of the demo. */
function say(part: string, text: string): void {
  console.log(`  ${part.padEnd(8)}  ${text}`)
}

/**
 * Starts Kafka. Kafka can't be stopped before it has started, so after Ctrl-C its stop first waits for the
 * start, at most `kafkaStopMs`.
 */
async function startKafkaFor(lifetime: Lifetime): Promise<RunningKafka> {
  const starting = startKafka({ report: (line) => say('kafka', line) })
  lifetime.onStop('Kafka', async () => {
    const late = sleep(kafkaStopMs, undefined, { ref: false })
    const kafka = await Promise.race([starting.catch(() => undefined), late])
    await kafka?.stop()
  })
  return lifetime.orEnd(starting)
}

async function applyTopics(settings: Settings, prefix: string, lifetime: Lifetime): Promise<string[]> {
  const lines = await runSluice(['topics', 'apply'], settings, lifetime.signal)
  const topics = lines.map((line) => line.replace(/^created +/, ''))
  const names = topics.map((topic) => topic.slice(prefix.length))
  say('topics', `made by sluice topics apply: ${names.join(', ')}`)
  return topics
}

/** Starts the customers' servers, and writes the catalog with their URLs. */
async function startCustomersIn(
  catalogFile: string,
  elapsedMs: () => number,
  lifetime: Lifetime,
): Promise<Customers> {
  const customers = await startCustomers(elapsedMs)
  lifetime.onStop("customers' servers", () => customers.stop())
  await writeCatalog(catalogFile, customers)
  say(
    'servers',
    `of ${customers.all.size} customers, in this process; each verifies the signatures of what it gets`,
  )
  say('loopback', `private addresses are refused by default: the worker is told to allow ${loopback}`)
  return customers
}

/** Starts worker, gateway and index at the same time, and prints a line about each. */
async function startRoles(
  settings: Settings,
  folder: string,
  lifetime: Lifetime,
): Promise<{ worker: SluiceProcess; gateway: SluiceProcess }> {
  const [worker, gateway, index] = await Promise.all([
    startRole('worker', settings, folder, lifetime),
    startRole('gateway', settings, folder, lifetime),
    startRole('log serve', settings, folder, lifetime),
  ])
  sayStarted(worker, gateway, index)
  return { worker, gateway }
}

async function startRole(
  role: Role,
  settings: Settings,
  folder: string,
  lifetime: Lifetime,
): Promise<SluiceProcess> {
  const started = await spawnRole(role, settings, folder)
  lifetime.onStop(`the ${role}`, () => started.stop())
  void started.exited.then(async (code) =>
    lifetime.fail(
      new Error(`the ${role} ended with code ${code}. End of its log:\n${await started.lastWords()}`),
    ),
  )
  await started.ready(lifetime.signal)
  return started
}

function sayStarted(worker: SluiceProcess, gateway: SluiceProcess, index: SluiceProcess): void {
  const { waits, last, limit } = ladder
  say('worker', `sluice worker, process ${worker.pid}; its log: ${shownPath(worker.logFile)}`)
  say(
    'ladder',
    `retries after ${waits.join(', ')} s, then each ${last} s, for ${limit} s (by default: up to 1 h, for 4 h)`,
  )
  say('gateway', `sluice gateway, process ${gateway.pid}, at ${gateway.gatewayUrl}; Segment's tracking API`)
  say('log', `sluice log serve, process ${index.pid}, keeps what became of each delivery, to be asked for`)
  say('sources', `website and mobile-app send to it with Segment's client for Node, billing writes to Kafka`)
}

/**
 * Returns a function that gives each source its client. A client is created at the first call for its source.
 */
function segmentClients(url: string, lifetime: Lifetime): (sourceId: SourceId) => SegmentClient {
  const clients = new Map<SourceId, SegmentClient>()
  return (sourceId) => {
    const known = clients.get(sourceId)
    if (known !== undefined) return known
    const client = createSegmentClient(url, writeKeyOf(sourceId))
    clients.set(sourceId, client)
    lifetime.onStop(`the client of ${sourceId}`, () => client.close())
    return client
  }
}
