import { createHash } from 'node:crypto'
import { mkdtemp, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import process from 'node:process'
import { JavaNode } from './broker-node.ts'
import { newClusterId } from './data-folder.ts'
import { freePorts } from './free-ports.ts'

const dumpDeadlineMs = 120_000

/**
 * Returns the file of Kafka's loaded classes (Java's class data sharing), if `writeClassArchive` has written
 * it for this Java. With this file, a broker starts with half of the CPU time.
 */
export async function findClassArchive(jars: string): Promise<string | undefined> {
  const file = await archiveFile(jars)
  return file !== undefined && (await statOf(file)) !== undefined ? file : undefined
}

/**
 * Writes the archive of `findClassArchive` if it doesn't exist. A broker has to run once for this, which
 * takes about 15 seconds.
 */
export async function writeClassArchive(jars: string): Promise<void> {
  const file = await archiveFile(jars)
  if (file === undefined || (await statOf(file)) !== undefined) return
  const folder = await mkdtemp(join(tmpdir(), 'sluice-classes-'))
  try {
    const part = `${file}.${process.pid}`
    const broker = await plainBroker(folder, jars, [`-XX:ArchiveClassesAtExit=${part}`])
    await broker.prepare()
    await broker.start()
    await broker.stop(dumpDeadlineMs)
    await removeArchives(jars)
    await rename(part, file)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Removes the archives that an earlier version of Java has written, 50 MB each. */
async function removeArchives(jars: string): Promise<void> {
  for (const name of await readdir(dirname(jars)))
    if (name.startsWith(`${basename(jars)}-`) && name.endsWith('.jsa'))
      await rm(join(dirname(jars), name), { force: true })
}

async function plainBroker(folder: string, jars: string, javaFlags: readonly string[]): Promise<JavaNode> {
  const [client = 0, controller = 0] = await freePorts(2)
  return new JavaNode({
    id: 1,
    count: 1,
    folder,
    ports: { client, controller },
    voters: [`1@127.0.0.1:${controller}`],
    clusterId: newClusterId(),
    jars,
    heapMb: 256,
    scratch: folder,
    extra: { listeners: [], javaFlags },
  })
}

/** An archive is valid only for the Java that wrote it. So the name of the file has a hash of that Java. */
async function archiveFile(jars: string): Promise<string | undefined> {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const java = await realpath(join(folder, 'java')).catch(() => undefined)
    const found = java === undefined ? undefined : await statOf(java)
    if (found === undefined) continue
    const identity = `${java} ${found.mtimeMs} ${found.size}`
    return `${jars}-${createHash('sha256').update(identity).digest('hex').slice(0, 12)}.jsa`
  }
  return undefined
}

function statOf(path: string): Promise<{ mtimeMs: number; size: number } | undefined> {
  return stat(path).catch(() => undefined)
}
