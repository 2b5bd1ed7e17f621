import { execFile } from 'node:child_process'
import { copyFile, mkdir, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { renderProperties } from './broker-properties.ts'
import { newClusterId } from './data-folder.ts'

/** The data folder that has to be formatted before the first start of its broker. */
export type UnformattedFolder = {
  data: string
  nodeId: number
  clusterId: string
  jars: string
  /** The file with the settings of the broker. */
  settings: string
  /** Arguments for `StorageTool format`, for example for users that exist from the first start on. */
  formatArgs: readonly string[]
  /** Flags for the Java of `StorageTool`. */
  javaFlags: readonly string[]
}

const formatTimeoutMs = 60_000

/**
 * Formats the data folder of a broker. Does nothing if the folder is formatted already. `StorageTool` takes
 * two seconds of CPU time. So it runs once for each version of Kafka, and its result is kept beside the jars
 * for later folders. With `formatArgs`, it runs each time.
 */
export async function formatFolder(folder: UnformattedFolder): Promise<void> {
  if (await exists(join(folder.data, 'meta.properties'))) return
  if (folder.formatArgs.length > 0) return runStorageTool(folder)
  const kept = `${folder.jars}-bootstrap.checkpoint`
  if (await exists(kept)) return copyFormat(folder, kept)
  await runStorageTool(folder)
  await keep(join(folder.data, 'bootstrap.checkpoint'), kept)
}

async function runStorageTool({
  jars,
  clusterId,
  settings,
  formatArgs,
  javaFlags,
}: UnformattedFolder): Promise<void> {
  const args = ['kafka.tools.StorageTool', 'format', '-t', clusterId, '-c', settings, ...formatArgs]
  const flags = ['-XX:TieredStopAtLevel=1', ...javaFlags, '-cp', `${jars}/*`]
  await promisify(execFile)('java', [...flags, ...args], { timeout: formatTimeoutMs })
}

/**
 * Writes what `StorageTool` writes: the identity of the folder, and the versions of the cluster's features.
 * These versions are the same in each folder. `meta.properties` is written last, because the folder counts as
 * formatted once it has this file.
 */
async function copyFormat({ data, nodeId, clusterId }: UnformattedFolder, kept: string): Promise<void> {
  await mkdir(data, { recursive: true })
  await copyFile(kept, join(data, 'bootstrap.checkpoint'))
  const identity = {
    version: '1',
    'cluster.id': clusterId,
    'node.id': String(nodeId),
    'directory.id': newClusterId(),
  }
  await writeFile(join(data, 'meta.properties'), renderProperties(identity))
}

/** Copies a file by renaming the copy, so that the target is complete as soon as it exists. */
async function keep(source: string, target: string): Promise<void> {
  if (!(await exists(source))) return
  const part = `${target}.${process.pid}`
  await copyFile(source, part)
  await rename(part, target)
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
