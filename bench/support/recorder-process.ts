import { startChild } from './child.ts'
import type { Certificates } from './tls.ts'

/** A destination that isn't like the others: it answers late, never, or is looked at by itself. */
export type Special = { destination: number; answerAfterMs: number | 'never' }

/** On the clock of `monotonicUs`. */
export type Span = { fromUs: number; untilUs: number }

export type Recording = {
  /** Their numbers are 0 to `messages` - 1. */
  messages: number
  secret: string
  special: readonly Special[]
}

export type Command =
  | ({ kind: 'begin' } & Recording)
  | { kind: 'progress' }
  | { kind: 'report'; window: Span }

/** Distinct messages that have come. */
export type Progress = { others: number; special: number[] }

/** From the call that produced a message to its arrival, in milliseconds, of those produced in the window. */
export type Latency = {
  samples: number
  p50: number
  p99: number
  p999: number
  max: number
  /** The p99 of each second of the window, by when it was produced: shows whether it was bad once or always. */
  p99BySecond: readonly number[]
}

/** What came to one destination, or to all that are not special. */
export type GroupReport = {
  requests: number
  distinct: number
  /** Requests with a message that had come before. */
  repeats: number
  /** Distinct messages that came within the window. */
  inWindow: number
  latency: Latency
  /** When the last new message came, on the clock of `monotonicUs`; 0 for none. */
  lastArrivalUs: number
}

export type RecorderReport = {
  others: GroupReport
  /** In the order of `Recording.special`. */
  special: readonly GroupReport[]
  /** Requests without the number of a message of this run. */
  unknown: number
  signatures: { checked: number; wrong: number }
  connectionsInWindow: number
  /** Messages a second from the middle one to the last. */
  secondHalfPerS: number
  /** The busy share of the receiver's event loop since `begin`, 0 to 1. */
  utilization: number
}

export type Recorder = {
  /** The URL of a destination: 1,000 addresses with one port, and a path each. */
  urlOf(destination: number): string
  /** Forgets all before. */
  begin(recording: Recording): void
  progress(): Promise<Progress>
  report(window: Span): Promise<RecorderReport>
  stop(): Promise<void>
}

const addressCount = 1_000

/** 127.0.1.1 to 127.0.4.250: a host each, without a name to look up. */
export function addressOf(destination: number): string {
  const index = destination % addressCount
  return `127.0.${1 + Math.floor(index / 250)}.${1 + (index % 250)}`
}

/**
 * Starts the customers' servers, in a process of their own; `destinations` says how many addresses are needed. Over TLS where they
 * are given certificates, one for each address.
 */
export async function startRecorder(destinations: number, certificates?: Certificates): Promise<Recorder> {
  const hosts = Array.from({ length: Math.min(destinations, addressCount) }, (_, index) => addressOf(index))
  const identities = certificates === undefined ? [] : [certificates.fileFor(hosts)]
  const scheme = certificates === undefined ? 'http' : 'https'
  const child = startChild('recorder.ts', [String(hosts.length), ...identities])
  const port = Number(await child.next())
  return {
    urlOf: (destination) => `${scheme}://${addressOf(destination)}:${port}/d/${destination}`,
    begin(recording) {
      const command: Command = { kind: 'begin', ...recording }
      child.tell(command)
    },
    async progress() {
      const command: Command = { kind: 'progress' }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it answers to this command
      return (await child.ask(command)) as Progress
    },
    async report(window) {
      const command: Command = { kind: 'report', window }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it answers to this command
      return (await child.ask(command)) as RecorderReport
    },
    stop: () => child.stop(),
  }
}
