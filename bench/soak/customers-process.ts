import { startChild } from '../support/child.ts'
import { addressOf } from '../support/recorder-process.ts'

/**
 * How a destination answers. `healthy` accepts all requests at once, and `slow` after two seconds. `failing`
 * answers half of the requests with 500. `dead` never answers. `resetting` resets the connection instead of
 * answering.
 */
export type Behaviour = 'healthy' | 'dead' | 'slow' | 'failing' | 'resetting'

export type Plan = {
  /** The behaviours of the destinations. The index is the number of the destination. */
  behaviours: readonly Behaviour[]
  /** The secrets with which a request may be signed. */
  secrets: readonly string[]
  /** The number of messages. They are numbered from 0. */
  messages: number
}

export type Command =
  | { kind: 'restart'; destinations: readonly number[]; downMs: number }
  | { kind: 'progress' }
  | { kind: 'report' }

export type Report = {
  requests: number
  /** 1 for each message that was answered with 200. The index is the message number. */
  accepted: Uint8Array
  /** The number of accepted requests with a message that had been accepted before. */
  repeats: number
  /** The number of requests without the number of a message of this run. */
  unknown: number
  /** The number of requests that were signed with each secret. */
  signedWith: readonly number[]
  /** The number of requests that were signed with no secret of the plan. */
  wronglySigned: number
}

export type Customers = {
  urlOf(destination: number): string
  /** Closes all connections of these servers, and refuses new ones for `downMs`. */
  restart(destinations: readonly number[], downMs: number): void
  /** Returns the number of distinct messages accepted so far. */
  progress(): Promise<number>
  report(): Promise<Report>
  stop(): Promise<void>
}

/** How long a `slow` destination takes to answer, in milliseconds. */
export const slowMs = 2_000

/** Starts one process with a server for each destination. The process ends with this process. */
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
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the child's answer to this command
    report: async () => (await ask({ kind: 'report' })) as Report,
    stop: () => child.stop(),
  }
}
