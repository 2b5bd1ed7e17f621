import { runtimeOfFolder } from './data-folder.ts'
import { dockerAvailability, startInDocker } from './docker-kafka.ts'
import { javaAvailability, startOnJava } from './java-kafka.ts'
import { askMetadata, waitForCluster } from './metadata.ts'
import type { Availability, ClusterPlan, KafkaRuntime, Report, RunningKafka } from './running-kafka.ts'

export type { KafkaNode, RunningKafka } from './running-kafka.ts'

/** Options of `startKafka`. Every field has a default. */
export type KafkaOptions = {
  /**
   * The addresses of a running Kafka, each as `host:port`. Default: the environment variable `KAFKA_BROKERS`.
   * If there are addresses, no Kafka is started.
   */
  brokers?: readonly string[]
  /**
   * The number of brokers. Three brokers keep three replicas of each partition, and a write needs two of the
   * replicas. Default: 1.
   */
  count?: 1 | 3
  /**
   * The folder that keeps the data between starts. Default: a temporary folder, which is removed at the stop.
   */
  dataDir?: string
  /**
   * The preferred port for clients of the first broker. If the port is taken, another port is used, and
   * `describe` says so.
   */
  port?: number
  /** The Java heap of each broker, in MB. Default: 256. Under load, 1024 is better. */
  heapMb?: number
  /** How long a configured Kafka may take to answer, in milliseconds. Default: 10 s. */
  attachTimeoutMs?: number
  /** The ways of getting a Kafka. They are tried in the order of this list. Default: all three. */
  ways?: readonly KafkaRuntime[]
  report?: Report
}

const allWays: readonly KafkaRuntime[] = ['configured', 'docker', 'java']

/**
 * Gets a real Kafka on any machine. This is the configured Kafka if there is one, otherwise a Kafka in
 * Docker, and otherwise a Kafka on the machine's Java. If none of these is possible, rejects with advice on
 * what to install. If a broker doesn't start, rejects with the end of the broker's log. A Kafka that this
 * function has started ends at `stop`, or when this process ends in any way.
 */
export async function startKafka(options: KafkaOptions = {}): Promise<RunningKafka> {
  const startedAt = performance.now()
  const { report = () => {} } = options
  const kafka = await takeWay(options, report)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  report(`Kafka is up after ${seconds} s: ${kafka.describe}`)
  return kafka
}

async function takeWay(options: KafkaOptions, report: Report): Promise<RunningKafka> {
  const { ways = allWays, count = 1, heapMb = 256, dataDir, port } = options
  const brokers = options.brokers ?? configuredBrokers()
  if (brokers.length > 0 && ways.includes('configured'))
    return attach(brokers, count, options.attachTimeoutMs)
  const plan: ClusterPlan = { count, heapMb, dataDir, port, report }
  const kept = dataDir === undefined ? undefined : await runtimeOfFolder(dataDir)
  const reasons: Partial<Record<KafkaRuntime, string>> = {}
  for (const way of ways) {
    if (way === 'configured' || (kept !== undefined && way !== kept)) continue
    const availability = await starters[way].availability()
    if (availability.ok) return starters[way].start(plan)
    reasons[way] = availability.reason
  }
  throw new Error(nothingFound(reasons, kept === undefined ? undefined : dataDir))
}

type Starter = {
  availability(): Promise<Availability>
  start(plan: ClusterPlan): Promise<RunningKafka>
}

const starters: Readonly<Record<'docker' | 'java', Starter>> = {
  docker: { availability: dockerAvailability, start: startInDocker },
  java: { availability: javaAvailability, start: startOnJava },
}

function configuredBrokers(): string[] {
  const listed = (process.env['KAFKA_BROKERS'] ?? '').split(',')
  return listed.map((address) => address.trim()).filter((address) => address !== '')
}

/**
 * Attaches to a configured Kafka. As for every client, it is enough if one of the addresses answers. The
 * other brokers may be down.
 */
async function attach(brokers: readonly string[], count: number, timeoutMs = 10_000): Promise<RunningKafka> {
  const first = await Promise.any(
    brokers.map(async (address) => {
      await waitForCluster([address], 1, { timeoutMs })
      return address
    }),
  ).catch((error: AggregateError) => {
    const problems = error.errors.map((problem: Error) => problem.message).join('; ')
    throw new Error(`the configured Kafka (KAFKA_BROKERS) does not answer: ${problems}`, { cause: error })
  })
  const { brokers: present } = await askMetadata(first, timeoutMs)
  if (present.length < count) {
    throw new Error(`the configured Kafka at ${first} has ${present.length} of the ${count} brokers needed`)
  }
  const describe = `the configured Kafka at ${brokers.join(', ')}`
  return { brokers: [...brokers], way: 'configured', describe, stop: async () => {} }
}

function nothingFound(reasons: Partial<Record<KafkaRuntime, string>>, keptIn: string | undefined): string {
  const why = (way: 'docker' | 'java') => (reasons[way] === undefined ? '' : ` (here: ${reasons[way]})`)
  const data = keptIn === undefined ? '' : `; the data in ${keptIn} can be had by one of them only`
  return [
    `there is no Kafka, and none can be started here${data}. One of these is needed:`,
    '  - KAFKA_BROKERS=host:port of a Kafka that runs',
    `  - a Docker engine that answers${why('docker')}`,
    `  - Java 17 or later with Maven: apt-get install openjdk-17-jre-headless maven${why('java')}`,
  ].join('\n')
}
