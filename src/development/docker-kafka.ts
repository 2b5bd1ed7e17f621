import { setTimeout as sleep } from 'node:timers/promises'
import type { StartedNetwork, StartedTestContainer } from 'testcontainers'
import { brokerProperties, renderEnvironment } from './broker-properties.ts'
import { type DataFolder, openDataFolder } from './data-folder.ts'
import { kafkaVersion } from './jars.ts'
import { describeFailure, waitForCluster } from './metadata.ts'
import { freePorts, portNote } from './free-ports.ts'
import type { Availability, ClusterPlan, RunningKafka } from './running-kafka.ts'

const image = `apache/kafka:${kafkaVersion}`
const engineTimeoutMs = 10_000
const startTimeoutMs = 120_000
const stopDeadlineMs = 15_000
const shownLogLines = 15

/** The ports inside the containers. The port for clients is bound to a port of the host. */
const ports = { client: 9092, internal: 9093, controller: 9094 }

/**
 * Finds out whether a Docker engine answers. Asks the engine itself, because a `docker` command or a socket
 * file doesn't prove that an engine runs.
 */
export async function dockerAvailability(): Promise<Availability> {
  try {
    await withDeadline(engineHost(), engineTimeoutMs)
    return { ok: true }
  } catch (error) {
    return { ok: false, reason: isMissingPackage(error) ? noPackage : describeFailure(error) }
  }
}

/**
 * The advice if the package `testcontainers` is missing. An installed Sluice doesn't include this package,
 * because production has a Kafka of its own.
 */
const noPackage = 'the package testcontainers is missing: npm install testcontainers'

function isMissingPackage(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
}

/** Starts the `apache/kafka` image in KRaft mode. The containers are removed when this process has ended. */
export async function startInDocker(plan: ClusterPlan): Promise<RunningKafka> {
  const folder = await openDataFolder(plan, 'docker')
  const started: Started = { containers: [], network: undefined }
  try {
    const brokers = await startContainers(plan, folder, started)
    await waitForCluster(brokers, plan.count, { timeoutMs: 30_000 })
    await folder.markRunning(brokers)
    const describe = describeCluster(plan, folder, brokers)
    return { brokers, way: 'docker', describe, stop: () => stopContainers(started, folder) }
  } catch (error) {
    // testcontainers removes the remaining containers when this process ends.
    await stopContainers(started, folder).catch(() => {})
    throw error
  }
}

type Started = { containers: StartedTestContainer[]; network: StartedNetwork | undefined }

async function startContainers(plan: ClusterPlan, folder: DataFolder, started: Started): Promise<string[]> {
  const { Network } = await import('testcontainers')
  const host = await engineHost()
  const clientPorts = await freePorts(plan.count, plan.port)
  const brokers = clientPorts.map((port) => `${host}:${port}`)
  plan.report(`starting ${image} in Docker (the first time it is downloaded)`)
  const network = await new Network().start()
  started.network = network
  const results = await Promise.allSettled(
    brokers.map(async (address, index) => {
      const environment = environmentOf(plan, folder, { id: index + 1, address })
      const port = clientPorts[index] ?? 0
      started.containers.push(
        await startContainer({
          id: index + 1,
          port,
          environment,
          network,
          volume: volumeOf(folder, index + 1),
        }),
      )
    }),
  )
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  return brokers
}

type ContainerPlan = {
  id: number
  port: number
  environment: Record<string, string>
  network: StartedNetwork
  volume: string | undefined
}

async function startContainer(plan: ContainerPlan): Promise<StartedTestContainer> {
  const { GenericContainer, Wait } = await import('testcontainers')
  const log: string[] = []
  const container = new GenericContainer(image)
    .withNetwork(plan.network)
    .withNetworkAliases(alias(plan.id))
    // The port is chosen before the start, so that the broker knows which address to report to its clients.
    .withExposedPorts({ container: ports.client, host: plan.port })
    .withEnvironment(plan.environment)
    .withLogConsumer((stream) => {
      stream.on('data', (line: Buffer | string) => keepLast(log, String(line).trimEnd()))
    })
    .withWaitStrategy(Wait.forLogMessage('Kafka Server started'))
    .withStartupTimeout(startTimeoutMs)
  if (plan.volume !== undefined) {
    container.withBindMounts([{ source: plan.volume, target: '/var/lib/kafka/data' }])
  }
  try {
    return await container.start()
  } catch (cause) {
    const text = log.length === 0 ? describeFailure(cause) : log.join('\n')
    throw new Error(`Kafka broker ${plan.id} did not start in Docker:\n${text}`, { cause })
  }
}

function environmentOf(
  { count, heapMb }: ClusterPlan,
  { clusterId }: DataFolder,
  { id, address }: { id: number; address: string },
): Record<string, string> {
  const ids = Array.from({ length: count }, (_, index) => index + 1)
  const properties = brokerProperties({
    id,
    count,
    voters: ids.map((voter) => `${voter}@${alias(voter)}:${ports.controller}`),
    listeners: [
      `PLAINTEXT://:${ports.client}`,
      `INTERNAL://:${ports.internal}`,
      `CONTROLLER://:${ports.controller}`,
    ],
    // Clients connect through the host's port. Other brokers connect through the containers' network.
    advertised: [`PLAINTEXT://${address}`, `INTERNAL://${alias(id)}:${ports.internal}`],
    interBroker: 'INTERNAL',
    logDir: '/var/lib/kafka/data',
  })
  return {
    ...renderEnvironment(properties),
    CLUSTER_ID: clusterId,
    KAFKA_HEAP_OPTS: `-Xmx${heapMb}m -Xms${Math.min(128, heapMb)}m`,
  }
}

function alias(id: number): string {
  return `kafka-${id}`
}

/**
 * Returns the volume for kept data, or `undefined` if the data isn't kept. It is a named volume, because the
 * image's user can't write to a folder of the host.
 */
function volumeOf({ isKept, clusterId }: DataFolder, id: number): string | undefined {
  return isKept ? `sluice-kafka-${clusterId}-${id}` : undefined
}

async function stopContainers({ containers, network }: Started, folder: DataFolder): Promise<void> {
  const timeout = folder.isKept ? stopDeadlineMs : 0
  await Promise.all(containers.map((container) => container.stop({ timeout })))
  await network?.stop()
  await folder.close()
}

function describeCluster(plan: ClusterPlan, folder: DataFolder, brokers: readonly string[]): string {
  const data = folder.isKept ? `data kept in the volume ${volumeOf(folder, 1)}` : 'temporary data'
  return `${image} in Docker at ${brokers.join(', ')}, ${data}${portNote(plan.port, brokers)}`
}

/**
 * Returns the host at which clients reach the Docker engine. `localhost` is replaced by an IPv4 address,
 * because `localhost` may mean ::1, where a published port isn't always reachable.
 */
async function engineHost(): Promise<string> {
  const { getContainerRuntimeClient } = await import('testcontainers')
  const { host } = (await getContainerRuntimeClient()).info.containerRuntime
  return host === 'localhost' ? '127.0.0.1' : host
}

async function withDeadline<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  const over = new AbortController()
  const late = sleep(timeoutMs, undefined, { signal: over.signal }).then(() => {
    throw new Error(`no answer within ${timeoutMs} ms`)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    over.abort()
  }
}

function keepLast(lines: string[], line: string): void {
  lines.push(line)
  if (lines.length > shownLogLines) lines.shift()
}
