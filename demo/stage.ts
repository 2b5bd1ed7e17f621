import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { type RunningKafka, startKafka } from '../src/development/kafka.ts'
import { type AudienceUpstream, createAudience } from './audience.ts'
import { createToken } from '../src/admin/tokens.ts'
import { type Admin, writeCatalog } from './catalog.ts'
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
  /** The file of the keys that sign and seal the catalog in its topic. */
  keysFile: string
  admin: Admin
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
 * Starts Kafka, the customers' servers, a worker, a gateway, an index of the delivery log and the admin API,
 * and prints a line about each. All started parts stop with `lifetime`.
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
  const [keysFile, tokensFile] = [join(folder, 'catalog-keys'), join(folder, 'tokens')]
  const { token, line } = createToken('demo', 'admin')
  await writeFile(tokensFile, `${line}\n`, { mode: 0o600 })
  const [stateFolder, indexFolder] = [join(folder, 'state'), join(folder, 'log')]
  lifetime.onStop('what the processes keep', async () => {
    for (const kept of [stateFolder, indexFolder, tokensFile])
      await rm(kept, { recursive: true, force: true })
  })
  const files = { keysFile, tokensFile, stateFolder, indexFolder }
  const settings = sluiceSettings({ brokers, topicPrefix, groupId, ...files })
  const [key = ''] = await runSluice(['catalog', 'key'], settings, lifetime.signal)
  await writeFile(keysFile, `${key}\n`, { mode: 0o600 })
  const topics = await applyTopics(settings, topicPrefix, lifetime)

  const customers = await startCustomersIn(settings, folder, elapsedMs, lifetime)
  const { worker, gateway, admin } = await startRoles(settings, folder, lifetime)
  const producer = await startProducer(client)
  lifetime.onStop('upstream services', () => producer.disconnect())
  return {
    brokers,
    client,
    topicPrefix,
    groupId,
    consumedTopics: topics.filter(
      (topic) =>
        !/(dead-letters|backfills|attempts|replay-jobs|notices|health|waiting-marks|lending|catalog|catalog-history)$/.test(
          topic,
        ),
    ),
    keysFile,
    admin: { url: admin.adminUrl, token },
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

/** Starts the customers' servers, and puts a catalog with their URLs into its topic. */
async function startCustomersIn(
  settings: Settings,
  folder: string,
  elapsedMs: () => number,
  lifetime: Lifetime,
): Promise<Customers> {
  const customers = await startCustomers(elapsedMs)
  lifetime.onStop("customers' servers", () => customers.stop())
  const catalogFile = join(folder, 'catalog.yaml')
  await writeCatalog(catalogFile, customers)
  const made = (await runSluice(['catalog', 'import', catalogFile], settings, lifetime.signal)).at(-1) ?? ''
  say('catalog', `in its topic, by sluice catalog import: ${made}`)
  say(
    'servers',
    `of ${customers.all.size} customers, in this process; each verifies the signatures of what it gets`,
  )
  say('loopback', `private addresses are refused by default: the worker is told to allow ${loopback}`)
  return customers
}

/** Starts worker, gateway, index and admin API at the same time, and prints a line about each. */
async function startRoles(
  settings: Settings,
  folder: string,
  lifetime: Lifetime,
): Promise<{ worker: SluiceProcess; gateway: SluiceProcess; admin: SluiceProcess }> {
  const [worker, gateway, index, admin] = await Promise.all([
    startRole('worker', settings, folder, lifetime),
    startRole('gateway', settings, folder, lifetime),
    startRole('log serve', settings, folder, lifetime),
    startRole('admin', settings, folder, lifetime),
  ])
  sayStarted({ worker, gateway, index, admin })
  return { worker, gateway, admin }
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

function sayStarted({
  worker,
  gateway,
  index,
  admin,
}: Record<'worker' | 'gateway' | 'index' | 'admin', SluiceProcess>): void {
  const { waits, last, limit } = ladder
  say('worker', `sluice worker, process ${worker.pid}; its log: ${shownPath(worker.logFile)}`)
  say(
    'ladder',
    `retries after ${waits.join(', ')} s, then each ${last} s, for ${limit} s (by default: up to 1 h, for 4 h)`,
  )
  say('gateway', `sluice gateway, process ${gateway.pid}, at ${gateway.gatewayUrl}; Segment's tracking API`)
  say('log', `sluice log serve, process ${index.pid}, keeps what became of each delivery, to be asked for`)
  say(
    'admin',
    `sluice admin, process ${admin.pid}, at ${admin.adminUrl}; it changes destinations while all runs`,
  )
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
