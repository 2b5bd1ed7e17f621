import { startChild } from '../support/child.ts'

export type Command = { kind: 'begin'; users: number } | { kind: 'progress' } | { kind: 'report' }

/** What came since `begin`, by number of the user, up to 255 each. `unknown`: requests that are no Identify of the audience. */
export type Report = { entered: Uint8Array; left: Uint8Array; unknown: number }

export type Receiver = {
  /** `http://127.0.0.1:PORT` */
  origin: string
  /** Forgets all before, and awaits users 0 to `users` - 1. */
  begin(users: number): void
  /** Requests that have come. */
  progress(): Promise<number>
  report(): Promise<Report>
  stop(): Promise<void>
}

/** Starts a server that takes all, in a process of its own, which ends with this one. */
export async function startReceiver(): Promise<Receiver> {
  const child = startChild('../audience/receiver.ts')
  const port = Number(await child.next())
  const ask = (command: Command): Promise<unknown> => child.ask(command)
  return {
    origin: `http://127.0.0.1:${port}`,
    begin(users) {
      const command: Command = { kind: 'begin', users }
      child.tell(command)
    },
    progress: async () => Number(await ask({ kind: 'progress' })),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it answers to this command
    report: async () => (await ask({ kind: 'report' })) as Report,
    stop: () => child.stop(),
  }
}
