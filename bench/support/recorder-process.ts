import { startChild } from './child.ts'
import type { Certificates } from './tls.ts'

/**
 * A destination that differs from the others. It answers late or never, or its figures are reported
 * separately.
 */
export type Special = { destination: number; answerAfterMs: number | 'never' }

/** A span of time on the clock of `monotonicUs`. */
export type Span = { fromUs: number; untilUs: number }

export type Recording = {
  /** The number of messages. They are numbered from 0. */
  messages: number
  secret: string
  special: readonly Special[]
}

export type Command =
  | ({ kind: 'begin' } & Recording)
  | { kind: 'progress' }
  | { kind: 'report'; window: Span }

/** The numbers of distinct messages that have arrived, for the special destinations and for the others. */
export type Progress = { others: number; special: number[] }

/**
 * The time from the call that produced a message to its arrival, in milliseconds. Only messages that were
 * produced in the window count.
 */
export type Latency = {
  samples: number
  p50: number
  p99: number
  p999: number
  max: number
  /**
   * The p99 of the messages that were produced in each second of the window. It shows whether the latency was
   * high once or always.
   */
  p99BySecond: readonly number[]
}

/** What has arrived at one special destination, or at all other destinations. */
export type GroupReport = {
  requests: number
  distinct: number
  /** The number of messages that had come before. */
  repeats: number
  /** The number of distinct messages that arrived in the window. */
  inWindow: number
  latency: Latency
  /** When the last new message arrived, on the clock of `monotonicUs`, or 0 if none has arrived. */
  lastArrivalUs: number
}

export type RecorderReport = {
  others: GroupReport
  /** The reports of the special destinations, in the order of `Recording.special`. */
  special: readonly GroupReport[]
  /** The number of requests without the number of a message of this run. */
  unknown: number
  signatures: { checked: number; wrong: number }
  connectionsInWindow: number
  /** The rate of messages a second from the middle message to the last one. */
  secondHalfPerS: number
  /** The busy share of the receiver's event loop since `begin`, 0 to 1. */
  utilization: number
}

export type Recorder = {
  /**
   * Returns the URL of a destination. All URLs have the same port, one of 1,000 addresses, and different
   * paths.
   */
  urlOf(destination: number): string
  /** Forgets everything earlier, and starts a recording. */
  begin(recording: Recording): void
  progress(): Promise<Progress>
  report(window: Span): Promise<RecorderReport>
  stop(): Promise<void>
}

const addressCount = 1_000

/**
 * Returns the address of a destination, from 127.0.1.1 to 127.0.4.250. So each destination, up to 1,000, is a
 * different host, and no name has to be looked up.
 */
export function addressOf(destination: number): string {
  const index = destination % addressCount
  return `127.0.${1 + Math.floor(index / 250)}.${1 + (index % 250)}`
}

/**
 * Starts a process with the customers' servers for `destinations` destinations, one server for each address.
 * With `certificates` the servers use TLS, with one certificate for each address.
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
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the child's answer to this command
      return (await child.ask(command)) as Progress
    },
    async report(window) {
      const command: Command = { kind: 'report', window }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the child's answer to this command
      return (await child.ask(command)) as RecorderReport
    },
    stop: () => child.stop(),
  }
}
