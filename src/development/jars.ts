import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Report } from './running-kafka.ts'
import { lastLines, startTethered } from './tether.ts'

/** The version of every Kafka that is started here, in Docker too. */
export const kafkaVersion = '4.3.1'

const product = `Apache Kafka ${kafkaVersion}`
const copyDependencies = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies'
const downloadTimeoutMs = 15 * 60_000
const abandonedAfterMs = 60 * 60_000

/** What is downloaded once is kept here, outside any checkout. `SLUICE_CACHE_DIR` overrides the place. */
export function cacheFolder(): string {
  const { SLUICE_CACHE_DIR: own, XDG_CACHE_HOME: caches } = process.env
  return own || join(caches || join(homedir(), '.cache'), 'sluice')
}

/** The folder of Kafka's jars, if they are there. It appears whole or not at all. */
export async function findJars(): Promise<string | undefined> {
  const folder = join(cacheFolder(), `kafka-${kafkaVersion}`)
  return (await exists(folder)) ? folder : undefined
}

/** Downloads Kafka's jars with Maven, unless they are there, and gives back their folder. */
export async function ensureJars(report: Report): Promise<string> {
  const cached = await findJars()
  if (cached !== undefined) return cached
  const cache = cacheFolder()
  const folder = join(cache, `kafka-${kafkaVersion}`)
  await mkdir(cache, { recursive: true })
  await removeAbandoned(cache)
  const part = await mkdtemp(join(cache, 'part-'))
  try {
    await download(part, folder, report)
    await moveInto(join(part, 'libs'), folder)
  } finally {
    await rm(part, { recursive: true, force: true })
  }
  return folder
}

async function download(part: string, folder: string, report: Report): Promise<void> {
  report(`downloading ${product} with Maven into ${folder} (about 45 MB, once)`)
  const startedAt = performance.now()
  const seconds = () => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`
  const log = join(part, 'maven.log')
  await writeFile(join(part, 'pom.xml'), pom)
  const progress = setInterval(() => {
    void countDownloaded(log).then((files) =>
      report(`downloading ${product}: ${files} files after ${seconds()}`),
    )
  }, 3_000)
  try {
    await runMaven(part, log)
  } finally {
    clearInterval(progress)
  }
  report(`downloaded ${product}: ${(await readdir(join(part, 'libs'))).length} jars in ${seconds()}`)
}

async function runMaven(part: string, log: string): Promise<void> {
  const libs = `-DoutputDirectory=${join(part, 'libs')}`
  const args = ['-B', '-f', join(part, 'pom.xml'), copyDependencies, '-DincludeScope=runtime', libs]
  const maven = await startTethered('mvn', args, { logFile: log, scratch: part })
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

/** A rename is all or nothing. When another process was faster, its folder is as good. */
async function moveInto(source: string, target: string): Promise<void> {
  try {
    await rename(source, target)
  } catch (error) {
    if (!(await exists(target))) throw error
  }
}

/** Downloads that were killed leave their folder. A young one may still be at work. */
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

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>sluice</groupId>
  <artifactId>development-kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>${kafkaVersion}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
`
