import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { type RunningKafka, startKafka } from '../../src/development/kafka.ts'
import { builtProgram } from './build.ts'

declare module 'vitest' {
  interface ProvidedContext {
    kafkaBrokers: string[]
    /** Where workers keep state that no test looks at. */
    stateFolder: string
    /** What runs as `sluice`: the build, in the project `package` as npm installs it. */
    program: string
  }
}

/** One Kafka and one folder for all projects of a run; `users` are the projects that they were given to. */
type SharedKafka = { users: number; started: Promise<RunningKafka>; stateFolder: Promise<string> }

/** Each project loads this file anew, so what they share is kept where all of them find it. */
const slot = Symbol.for('sluice.test-kafka')
const shared: typeof globalThis & { [slot]?: SharedKafka } = globalThis

/** Starts the run's Kafka, or attaches to `KAFKA_BROKERS`; the last project's teardown stops it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const kafka = (shared[slot] ??= {
    users: 0,
    started: startKafka({ report }),
    stateFolder: mkdtemp(join(tmpdir(), 'sluice-state-')),
  })
  kafka.users += 1
  project.provide('stateFolder', await kafka.stateFolder)
  project.provide('program', builtProgram())
  project.provide('kafkaBrokers', (await kafka.started).brokers)
  return () => leave(kafka)
}

async function leave(kafka: SharedKafka): Promise<void> {
  kafka.users -= 1
  if (kafka.users > 0) return
  delete shared[slot]
  await (await kafka.started).stop()
  await rm(await kafka.stateFolder, { recursive: true, force: true })
}

function report(line: string): void {
  process.stderr.write(`kafka: ${line}\n`)
}
