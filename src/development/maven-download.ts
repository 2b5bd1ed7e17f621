import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Report } from './running-kafka.ts'
import { lastLines, startTethered } from './tether.ts'

const downloadTimeoutMs = 15 * 60_000
const abandonedAfterMs = 60 * 60_000

/**
 * Returns the folder for downloads, which is outside of any checkout. The environment variable
 * `SLUICE_CACHE_DIR` sets another folder.
 */
export function cacheFolder(): string {
  const { SLUICE_CACHE_DIR: own, XDG_CACHE_HOME: caches } = process.env
  return own || join(caches || join(homedir(), '.cache'), 'sluice')
}

/** A program that Maven downloads into a folder of the cache. */
export type MavenDownload = {
  /** The name of the folder, such as `kafka-4.3.1`. */
  name: string
  /** The name that people see, such as `Apache Kafka 4.3.1`. */
  product: string
  megabytes: number
  /** Lets Maven download into the folder `part`. Returns the folder inside of `part` that has to be kept. */
  fetch: (part: string, maven: (args: readonly string[]) => Promise<void>) => Promise<string>
}

/** Returns the folder of a download if it exists. An existing folder is always complete. */
export async function findDownload({ name }: Pick<MavenDownload, 'name'>): Promise<string | undefined> {
  const folder = join(cacheFolder(), name)
  return (await exists(folder)) ? folder : undefined
}

/** Returns the folder of a program. If the folder doesn't exist, first downloads the program. */
export async function ensureDownload(download: MavenDownload, report: Report): Promise<string> {
  const cached = await findDownload(download)
  if (cached !== undefined) return cached
  const cache = cacheFolder()
  const folder = join(cache, download.name)
  await mkdir(cache, { recursive: true })
  await removeAbandoned(cache)
  const part = await mkdtemp(join(cache, 'part-'))
  try {
    await moveInto(await fetchInto(part, download, folder, report), folder)
  } finally {
    await rm(part, { recursive: true, force: true })
  }
  return folder
}

async function fetchInto(
  part: string,
  { product, megabytes, fetch }: MavenDownload,
  folder: string,
  report: Report,
): Promise<string> {
  report(`downloading ${product} with Maven into ${folder} (about ${megabytes} MB, once)`)
  const startedAt = performance.now()
  const seconds = () => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`
  const log = join(part, 'maven.log')
  const progress = setInterval(() => {
    void countDownloaded(log).then((files) =>
      report(`downloading ${product}: ${files} files after ${seconds()}`),
    )
  }, 3_000)
  try {
    const fetched = await fetch(part, (args) => runMaven(product, args, part, log))
    report(`downloaded ${product}: ${(await readdir(fetched)).length} files in ${seconds()}`)
    return fetched
  } finally {
    clearInterval(progress)
  }
}

async function runMaven(product: string, args: readonly string[], part: string, log: string): Promise<void> {
  const maven = await startTethered('mvn', ['-B', ...args], { logFile: log, scratch: part })
  const timer = setTimeout(() => maven.kill('SIGKILL'), downloadTimeoutMs)
  const code = await maven.exited
  clearTimeout(timer)
  if (code === 0) return
  throw new Error(`could not download ${product}: mvn ended with code ${code}\n${await lastLines(log)}`)
}

async function countDownloaded(log: string): Promise<number> {
  const text = await readFile(log, 'utf8').catch(() => '')
  return text.split('Downloaded from ').length - 1
}

/**
 * Moves a folder by renaming it, so that the target is complete as soon as it exists. If another process has
 * already moved its own folder to the target, the source isn't moved, and the target is used as it is.
 */
async function moveInto(source: string, target: string): Promise<void> {
  try {
    await rename(source, target)
  } catch (error) {
    if (!(await exists(target))) throw error
  }
}

/**
 * Removes the folders of downloads that were killed. Keeps recent folders, because they may belong to
 * downloads that are still running.
 */
async function removeAbandoned(cache: string): Promise<void> {
  const parts = (await readdir(cache)).filter((name) => name.startsWith('part-'))
  for (const part of parts.map((name) => join(cache, name))) {
    const modifiedAt = await stat(part).then(
      ({ mtimeMs }) => mtimeMs,
      () => Date.now(),
    )
    if (Date.now() - modifiedAt > abandonedAfterMs) await rm(part, { recursive: true, force: true })
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
