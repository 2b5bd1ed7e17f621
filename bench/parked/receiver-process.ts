import { startChild } from '../support/child.ts'

export type Command = { kind: 'begin'; messages: number } | { kind: 'progress' } | { kind: 'report' }

/**
 * What has arrived at the receiver. `unknown` counts the requests without the number of a message of this
 * run.
 */
export type Report = {
  /**
   * When each message arrived for the first time, in epoch milliseconds, or 0 for a message that didn't
   * arrive. The index is the message number.
   */
  arrivedAtMs: Float64Array
  repeats: number
  unknown: number
}

export type Receiver = {
  /** `http://127.0.0.1:PORT` */
  origin: string
  /** Forgets all earlier messages, and awaits the messages 0 to `messages` - 1. */
  begin(messages: number): void
  /** Returns the number of distinct messages that have arrived. */
  progress(): Promise<number>
  report(): Promise<Report>
  stop(): Promise<void>
}

/** Starts a process with a server that accepts every request. The process ends with this process. */
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
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the child's answer to this command
    report: async () => (await ask({ kind: 'report' })) as Report,
    stop: () => child.stop(),
  }
}
