import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { askMetadata } from './metadata.ts'
import type { ClusterPlan } from './running-kafka.ts'
import { isSystemError } from './system-error.ts'

/**
 * The file in a kept folder that describes its cluster. `brokers` are the addresses at which the cluster ran
 * last. The cluster may still run there.
 */
const ClusterRecord = Type.Object({
  clusterId: Type.String(),
  way: Type.Union([Type.Literal('docker'), Type.Literal('java')]),
  count: Type.Integer(),
  brokers: Type.Array(Type.String()),
})
type ClusterRecord = Static<typeof ClusterRecord>
const isRecord = (value: unknown): value is ClusterRecord => Value.Check(ClusterRecord, value)

/** The folder in which the brokers of one cluster keep their data and logs. */
export type DataFolder = {
  path: string
  clusterId: string
  isKept: boolean
  /**
   * Writes a file with the addresses of the running cluster to the folder. Because of this file, a second
   * start with this folder is refused.
   */
  markRunning(brokers: string[]): Promise<void>
  /** Removes a temporary folder. Does nothing to a kept folder. */
  close(): Promise<void>
}

/**
 * Opens or creates the folder of a plan. Rejects if the cluster of the folder is running already, or if it
 * has another number of brokers than the plan.
 */
export async function openDataFolder(plan: ClusterPlan, way: ClusterRecord['way']): Promise<DataFolder> {
  if (plan.dataDir === undefined) return temporaryFolder()
  const path = resolve(plan.dataDir)
  await mkdir(path, { recursive: true })
  const record = (await readRecord(path)) ?? {
    clusterId: newClusterId(),
    way,
    count: plan.count,
    brokers: [],
  }
  if (record.count !== plan.count) {
    throw new Error(`the Kafka data in ${path} is of ${record.count} broker(s), not of ${plan.count}`)
  }
  await refuseIfInUse(path, record)
  await writeRecord(path, record)
  return {
    path,
    clusterId: record.clusterId,
    isKept: true,
    markRunning: (brokers) => writeRecord(path, { ...record, brokers }),
    close: async () => {},
  }
}

/**
 * Returns `docker` or `java`, depending on which of them has filled a kept folder. Data that Docker wrote can
 * be read only by Docker, and data that Java wrote only by Java. Returns `undefined` if there is no data.
 */
export async function runtimeOfFolder(dataDir: string): Promise<ClusterRecord['way'] | undefined> {
  return (await readRecord(resolve(dataDir)))?.way
}

async function temporaryFolder(): Promise<DataFolder> {
  const path = await mkdtemp(join(tmpdir(), 'sluice-kafka-'))
  return {
    path,
    clusterId: newClusterId(),
    isKept: false,
    markRunning: async () => {},
    close: () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  }
}

/**
 * Makes a cluster id: 16 random bytes in Kafka's spelling. No id begins with a dash, because Kafka's tool
 * would treat such an id as an option.
 */
export function newClusterId(): string {
  const id = randomBytes(16).toString('base64url')
  return id.startsWith('-') ? newClusterId() : id
}

async function refuseIfInUse(path: string, { clusterId, brokers }: ClusterRecord): Promise<void> {
  for (const address of brokers) {
    const metadata = await askMetadata(address, 1_000).catch(() => undefined)
    if (metadata?.clusterId !== clusterId) continue
    throw new Error(
      `the Kafka data in ${path} is in use: its broker answers at ${address}. ` +
        `Stop that one, set KAFKA_BROKERS=${address} to use it, or take another folder`,
    )
  }
}

async function readRecord(path: string): Promise<ClusterRecord | undefined> {
  const file = recordFile(path)
  try {
    const record: unknown = JSON.parse(await readFile(file, 'utf8'))
    if (isRecord(record)) return record
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined
    throw new Error(`${file} can't be read`, { cause: error })
  }
  throw new Error(`${file} is not what was written there; remove ${path} to begin anew`)
}

async function writeRecord(path: string, record: ClusterRecord): Promise<void> {
  const file = recordFile(path)
  const part = `${file}.${process.pid}`
  await writeFile(part, `${JSON.stringify(record, undefined, 2)}\n`)
  await rename(part, file)
}

function recordFile(path: string): string {
  return join(path, 'cluster.json')
}
