import { startChild } from '../support/child.ts'

export type Command = { kind: 'begin'; messages: number } | { kind: 'progress' } | { kind: 'report' }

/** `unknown`: requests without the number of a message of this run. */
export type Report = {
  /** By number of the message: when it came first, in epoch milliseconds; 0 for never. */
  arrivedAtMs: Float64Array
  repeats: number
  unknown: number
}

export type Receiver = {
  /** `http://127.0.0.1:PORT` */
  origin: string
  /** Forgets all before, and awaits messages 0 to `messages` - 1. */
  begin(messages: number): void
  /** Distinct messages that have come. */
  progress(): Promise<number>
  report(): Promise<Report>
  stop(): Promise<void>
}

/** Starts a server that takes all, in a process of its own, which ends with this one. */
export async function startReceiver(): Promise<Receiver> {
  const child = startChild('../parked/receiver.ts')
  const port = Number(await child.next())
  const ask = (command: Command): Promise<unknown> => child.ask(command)
  return {
    origin: `http://127.0.0.1:${port}`,
    begin(messages) {
      const command: Command = { kind: 'begin', messages }
      child.tell(command)
    },
    progress: async () => Number(await ask({ kind: 'progress' })),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it answers to this command
    report: async () => (await ask({ kind: 'report' })) as Report,
    stop: () => child.stop(),
  }
}
