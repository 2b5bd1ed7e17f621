import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { writeClassArchive } from '../../src/development/class-archive.ts'
import { findJars } from '../../src/development/jars.ts'
import { type RunningKafka, startKafka } from '../../src/development/kafka.ts'
import { builtProgram } from './build.ts'

declare module 'vitest' {
  interface ProvidedContext {
    kafkaBrokers: string[]
    /** The folder for the states of workers, for tests that don't look at the folder. */
    stateFolder: string
    /**
     * The file that tests run as `sluice`. It is the build. In the project `package`, it is the build as npm
     * installs it.
     */
    program: string
  }
}

/**
 * The Kafka and the state folder that all projects of a test run share. `users` is the number of projects
 * that use them.
 */
type SharedKafka = {
  users: number
  started: Promise<RunningKafka>
  /** Resolves when the archive is written. Brokers of single tests start faster with this archive. */
  archived: Promise<void>
  stateFolder: Promise<string>
}

/**
 * The key under which `globalThis` holds what the projects share. A variable of this file can't hold it,
 * because each project loads this file anew.
 */
const slot = Symbol.for('sluice.test-kafka')
const shared: typeof globalThis & { [slot]?: SharedKafka } = globalThis

/**
 * Starts the Kafka of the test run, or attaches to `KAFKA_BROKERS`. Returns the project's teardown. The last
 * project's teardown stops the Kafka.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const kafka = (shared[slot] ??= share())
  kafka.users += 1
  project.provide('stateFolder', await kafka.stateFolder)
  project.provide('program', builtProgram())
  project.provide('kafkaBrokers', (await kafka.started).brokers)
  return () => leave(kafka)
}

function share(): SharedKafka {
  const started = startKafka({ report })
  return {
    users: 0,
    started,
    archived: started.then(archiveClasses).catch((error) => report(`no class archive: ${error}`)),
    stateFolder: mkdtemp(join(tmpdir(), 'sluice-state-')),
  }
}

async function archiveClasses(): Promise<void> {
  const jars = await findJars()
  if (jars !== undefined) await writeClassArchive(jars)
}

async function leave(kafka: SharedKafka): Promise<void> {
  kafka.users -= 1
  if (kafka.users > 0) return
  delete shared[slot]
  await kafka.archived
  await (await kafka.started).stop()
  await rm(await kafka.stateFolder, { recursive: true, force: true })
}

function report(line: string): void {
  process.stderr.write(`kafka: ${line}\n`)
}
