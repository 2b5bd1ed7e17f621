import { startChild } from './child.ts'
import type { Stream } from './streams.ts'

export type Command = { kind: 'start'; atUs: number }

export type Plan = {
  brokers: readonly string[]
  topic: string
  streams: readonly Stream[]
  /** Whether it keeps its rate counts from then on, in seconds from its start. */
  fromS: number
}

/** What became of a plan. `late`: how long after its time a message was produced, in milliseconds. */
export type Produced = {
  messages: number
  acknowledged: number
  late: { p99: number; max: number }
  /** What Kafka refused, in words. */
  errors: readonly string[]
}

export type Producer = {
  /** Begins at that moment of `monotonicUs`; resolves when all is produced and answered. */
  run(atUs: number): Promise<Produced>
  stop(): Promise<void>
}

/** Starts an upstream service, in a process of its own; it is connected when this resolves. */
export async function startProducer(plan: Plan): Promise<Producer> {
  const child = startChild('producer.ts', [JSON.stringify(plan)])
  await child.next()
  return {
    async run(atUs) {
      const command: Command = { kind: 'start', atUs }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it sends at its end
      return (await child.ask(command)) as Produced
    },
    stop: () => child.stop(),
  }
}
