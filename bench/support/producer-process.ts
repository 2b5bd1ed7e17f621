import { startChild } from './child.ts'
import type { Stream } from './streams.ts'

export type Command = { kind: 'start'; atUs: number }

export type Plan = {
  brokers: readonly string[]
  topic: string
  streams: readonly Stream[]
  /** The time from which the producer's lateness counts, in seconds from its start. */
  fromS: number
}

/**
 * The figures of a plan that was carried out. `late` is the time between the due time of a message and its
 * production, in milliseconds.
 */
export type Produced = {
  messages: number
  acknowledged: number
  late: { p99: number; max: number }
  /** The distinct error messages of failed sends. */
  errors: readonly string[]
}

export type Producer = {
  /** Begins at the time `atUs` of `monotonicUs`. Resolves when all messages are produced and answered. */
  run(atUs: number): Promise<Produced>
  stop(): Promise<void>
}

/** Starts a child process that acts as an upstream service. Resolves when it is connected to Kafka. */
export async function startProducer(plan: Plan): Promise<Producer> {
  const child = startChild('producer.ts', [JSON.stringify(plan)])
  await child.next()
  return {
    async run(atUs) {
      const command: Command = { kind: 'start', atUs }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the child's message at its end
      return (await child.ask(command)) as Produced
    },
    stop: () => child.stop(),
  }
}
