import { startChild } from '../support/child.ts'

export type Command = { kind: 'begin'; users: number } | { kind: 'progress' } | { kind: 'report' }

/**
 * Counts since `begin`. `entered` and `left` have one count for each user, by the user's number. `entered`
 * counts the Identifies that say that the user is in the audience, and `left` those that say that the user
 * isn't. Each count stops at 255. `unknown` counts the requests that are no Identify of the audience.
 */
export type Report = { entered: Uint8Array; left: Uint8Array; unknown: number }

export type Receiver = {
  /** `http://127.0.0.1:PORT` */
  origin: string
  /** Resets all counts. From now on, the users 0 to `users` - 1 are known. */
  begin(users: number): void
  /** Returns the number of requests since `begin`. */
  progress(): Promise<number>
  report(): Promise<Report>
  stop(): Promise<void>
}

/** Starts a separate process with a server that accepts every request. The process ends with this one. */
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
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the receiver's answer to this command
    report: async () => (await ask({ kind: 'report' })) as Report,
    stop: () => child.stop(),
  }
}
