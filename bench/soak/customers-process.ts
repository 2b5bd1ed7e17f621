import { startChild } from '../support/child.ts'
import { addressOf } from '../support/recorder-process.ts'

/**
 * `healthy` and `slow` take all, the one at once; `failing` answers half of the requests with 500; `dead` never
 * answers; `resetting` resets the connection instead of answering.
 */
export type Behaviour = 'healthy' | 'dead' | 'slow' | 'failing' | 'resetting'

export type Plan = {
  /** By number of the destination. */
  behaviours: readonly Behaviour[]
  /** A request may be signed with any of them. */
  secrets: readonly string[]
  /** Their numbers are 0 to `messages` - 1. */
  messages: number
}

export type Command =
  | { kind: 'restart'; destinations: readonly number[]; downMs: number }
  | { kind: 'progress' }
  | { kind: 'report' }

export type Report = {
  requests: number
  /** By number of the message: 1 when it was answered with 200. */
  accepted: Uint8Array
  /** Requests with a message that had been accepted before. */
  repeats: number
  /** Requests without the number of a message of this run. */
  unknown: number
  /** Requests by the secret that they were signed with, and those that were signed with none of them. */
  signedWith: readonly number[]
  wronglySigned: number
}

export type Customers = {
  urlOf(destination: number): string
  /** Cuts all connections of these servers, and refuses new ones for a while. */
  restart(destinations: readonly number[], downMs: number): void
  /** Distinct messages accepted so far. */
  progress(): Promise<number>
  report(): Promise<Report>
  stop(): Promise<void>
}

/** How long `slow` takes to answer. */
export const slowMs = 2_000

/** Starts a server for each destination, all in one process, which ends with this one. */
export async function startCustomers(plan: Plan): Promise<Customers> {
  const child = startChild('../soak/customers.ts', [JSON.stringify(plan)])
  const port = Number(await child.next())
  const ask = (command: Command): Promise<unknown> => child.ask(command)
  return {
    urlOf: (destination) => `http://${addressOf(destination)}:${port}/hook`,
    restart(destinations, downMs) {
      const command: Command = { kind: 'restart', destinations, downMs }
      child.tell(command)
    },
    progress: async () => Number(await ask({ kind: 'progress' })),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it answers to this command
    report: async () => (await ask({ kind: 'report' })) as Report,
    stop: () => child.stop(),
  }
}
