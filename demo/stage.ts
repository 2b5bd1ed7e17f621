import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { type RunningKafka, startKafka } from '../src/development/kafka.ts'
import { writeCatalog } from './catalog.ts'
import { type Customers, startCustomers } from './customers.ts'
import { makeRunFolder, shownPath } from './folder.ts'
import { createClient, removeTopics, startProducer } from './kafka.ts'
import type { Lifetime } from './lifetime.ts'
import { ladder } from './script.ts'
import { loopback, workerSettings } from './settings.ts'
import { createUpstream, type Upstream } from './upstream.ts'
import { runSluice, type Settings, spawnWorker, type WorkerProcess } from './worker.ts'

/** Everything that is started before the first message. */
export type Stage = {
  brokers: readonly string[]
  client: Kafka
  topicPrefix: string
  groupId: string
  /** The events topic and the retry topics. */
  consumedTopics: readonly string[]
  catalogFile: string
  customers: Customers
  worker: WorkerProcess
  upstream: Upstream
  /** From now on `elapsedMs` counts. */
  startClock(): void
  elapsedMs(): number
}

const kafkaStopMs = 10_000

/** Starts Kafka, the customers' servers and the worker, and says so. What was started stops with `lifetime`. */
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
  const settings = workerSettings({ brokers, topicPrefix, groupId, catalogFile })
  const topics = await applyTopics(settings, topicPrefix, lifetime)

  const customers = await startCustomers(elapsedMs)
  lifetime.onStop("customers' servers", () => customers.stop())
  await writeCatalog(catalogFile, customers)
  say(
    'servers',
    `of ${customers.all.size} customers, in this process; each verifies the signatures of what it gets`,
  )
  say('loopback', `private addresses are refused by default: the worker is told to allow ${loopback}`)

  const worker = await startWorker(settings, folder, lifetime)
  const producer = await startProducer(client)
  lifetime.onStop('upstream services', () => producer.disconnect())
  return {
    brokers,
    client,
    topicPrefix,
    groupId,
    consumedTopics: topics.filter((topic) => !topic.endsWith('dead-letters')),
    catalogFile,
    customers,
    worker,
    upstream: createUpstream(producer, `${topicPrefix}events`),
    startClock() {
      startedMs = performance.now()
    },
    elapsedMs,
  }
}

/** One line about a part: what it is, and what there is to know of it. */
function say(part: string, text: string): void {
  console.log(`  ${part.padEnd(8)}  ${text}`)
}

/** Kafka can't be stopped before it has started: Ctrl-C waits for that, for a while. */
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

async function startWorker(settings: Settings, folder: string, lifetime: Lifetime): Promise<WorkerProcess> {
  const worker = await spawnWorker(settings, folder)
  lifetime.onStop('the worker', () => worker.stop())
  void worker.exited.then(async (code) =>
    lifetime.fail(
      new Error(`the worker ended with code ${code}. End of its log:\n${await worker.lastWords()}`),
    ),
  )
  await worker.ready(lifetime.signal)
  const { waits, last, limit } = ladder
  say('worker', `sluice worker, process ${worker.pid}; its log: ${shownPath(worker.logFile)}`)
  say(
    'ladder',
    `retries after ${waits.join(', ')} s, then each ${last} s, for ${limit} s (by default: up to 1 h, for 4 h)`,
  )
  return worker
}
