import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { JavaNode, type NodePlan } from './broker-node.ts'
import { findClassArchive } from './class-archive.ts'
import { type DataFolder, openDataFolder } from './data-folder.ts'
import { ensureJars, findJars, kafkaVersion } from './jars.ts'
import { waitForCluster } from './metadata.ts'
import { freePorts, portNote } from './free-ports.ts'
import type { Availability, ClusterPlan, RunningKafka } from './running-kafka.ts'

const oldestJava = 17
const stopDeadlineMs = 15_000

/**
 * Finds out whether Kafka can run on this machine's Java. Maven is needed only until the jars are downloaded.
 */
export async function javaAvailability(): Promise<Availability> {
  const version = await javaVersion()
  if (version === undefined) return { ok: false, reason: 'there is no java that runs' }
  if (version < oldestJava) return { ok: false, reason: `java is of version ${version}` }
  if ((await findJars()) !== undefined || (await runs('mvn', '--version'))) return { ok: true }
  return { ok: false, reason: 'java is there, but no mvn that runs' }
}

/** Starts Apache Kafka from its jars. Each broker is a Java process of this machine on 127.0.0.1. */
export async function startOnJava(plan: ClusterPlan): Promise<RunningKafka> {
  const jars = await ensureJars(plan.report)
  const folder = await openDataFolder(plan, 'java')
  try {
    return await startNodes(plan, folder, jars)
  } catch (error) {
    await folder.close()
    throw error
  }
}

async function startNodes(plan: ClusterPlan, folder: DataFolder, jars: string): Promise<RunningKafka> {
  const ports = await freePorts(plan.count * 2, plan.port)
  const classArchive = await findClassArchive(jars)
  const nodes = nodePlans(plan, folder, jars, ports).map(
    (nodePlan) => new JavaNode({ ...nodePlan, classArchive }),
  )
  const brokers = nodes.map(({ address }) => address)
  try {
    await Promise.all(nodes.map((node) => node.prepare()))
    await Promise.all(nodes.map((node) => node.start()))
    await waitForCluster(brokers, plan.count, { timeoutMs: 30_000 })
  } catch (error) {
    await Promise.all(nodes.map((node) => node.kill('SIGKILL')))
    throw error
  }
  await folder.markRunning(brokers)
  return {
    brokers,
    way: 'java',
    describe: describe(plan, folder, brokers),
    nodes,
    stop: () => stopNodes(nodes, folder),
  }
}

/**
 * Stops the brokers. If the data is temporary, kills the brokers, because three brokers take 6 seconds for an
 * orderly end.
 */
async function stopNodes(nodes: readonly JavaNode[], folder: DataFolder): Promise<void> {
  await Promise.all(nodes.map((node) => (folder.isKept ? node.stop(stopDeadlineMs) : node.kill('SIGKILL'))))
  await folder.close()
}

function nodePlans(
  plan: ClusterPlan,
  folder: DataFolder,
  jars: string,
  ports: readonly number[],
): NodePlan[] {
  const clients = ports.slice(0, plan.count)
  const controllers = ports.slice(plan.count)
  const voters = controllers.map((port, index) => `${index + 1}@127.0.0.1:${port}`)
  return clients.map((client, index) => ({
    id: index + 1,
    count: plan.count,
    folder: join(folder.path, `broker-${index + 1}`),
    ports: { client, controller: controllers[index] ?? 0 },
    voters,
    clusterId: folder.clusterId,
    jars,
    heapMb: plan.heapMb,
    scratch: folder.isKept ? undefined : folder.path,
  }))
}

function describe(plan: ClusterPlan, folder: DataFolder, brokers: readonly string[]): string {
  const data = folder.isKept ? `data kept in ${folder.path}` : 'temporary data'
  return `Apache Kafka ${kafkaVersion} on Java at ${brokers.join(', ')}, ${data}${portNote(plan.port, brokers)}`
}

async function javaVersion(): Promise<number | undefined> {
  try {
    const { stdout, stderr } = await promisify(execFile)('java', ['-version'], { timeout: 20_000 })
    const major = /version "(\d+)/.exec(stderr + stdout)?.[1]
    return major === undefined ? undefined : Number(major)
  } catch {
    return undefined
  }
}

async function runs(command: string, ...args: string[]): Promise<boolean> {
  return promisify(execFile)(command, args, { timeout: 20_000 }).then(
    () => true,
    () => false,
  )
}
