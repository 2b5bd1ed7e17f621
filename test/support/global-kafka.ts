import type { TestProject } from 'vitest/node'
import { type RunningKafka, startKafka } from '../../src/development/kafka.ts'

declare module 'vitest' {
  interface ProvidedContext {
    kafkaBrokers: string[]
  }
}

/** One Kafka for all projects of a run; `users` are the projects that it was given to. */
type SharedKafka = { users: number; started: Promise<RunningKafka> }

/** Each project loads this file anew, so what they share is kept where all of them find it. */
const slot = Symbol.for('sluice.test-kafka')
const shared: typeof globalThis & { [slot]?: SharedKafka } = globalThis

/** Starts the run's Kafka, or attaches to `KAFKA_BROKERS`; the last project's teardown stops it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const kafka = (shared[slot] ??= { users: 0, started: startKafka({ report }) })
  kafka.users += 1
  project.provide('kafkaBrokers', (await kafka.started).brokers)
  return () => leave(kafka)
}

async function leave(kafka: SharedKafka): Promise<void> {
  kafka.users -= 1
  if (kafka.users > 0) return
  delete shared[slot]
  await (await kafka.started).stop()
}

function report(line: string): void {
  process.stderr.write(`kafka: ${line}\n`)
}
