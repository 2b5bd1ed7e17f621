import { startChild } from './child.ts'
import type { Certificates } from './tls.ts'

/** A moment of a run by the monotonic clock: the sender's CPU time so far, when so many distinct messages had come. */
export type Mark = { distinct: number; atMs: number; cpuUs: number }

/** What has come since `begin`. `unknown`: requests without the number of a message of this run. */
export type Report = {
  deliveries: number
  distinct: number
  repeats: number
  unknown: number
  connections: number
  /** Of those that were checked; none are without a secret. */
  signatures: { checked: number; wrong: number }
  /** The first delivery, the middle one and the last, as far as they have come. */
  marks: readonly Mark[]
}

export type Command =
  | { kind: 'begin'; expected: number; secret: string | undefined }
  | { kind: 'watch'; pid: number }
  | { kind: 'report' }

export type Receiver = {
  /** `http://127.0.0.1:PORT`, or `https:`. */
  origin: string
  /** Forgets all before; `expected` messages are awaited. With a secret, one in 100 signatures is checked. */
  begin(run: { expected: number; secret: string | undefined }): void
  /** Names the process whose CPU time is noted; at the latest before its first delivery. */
  watch(pid: number): void
  report(): Promise<Report>
  stop(): Promise<void>
}

const host = '127.0.0.1'

/** Starts the receiver as a process of its own, which ends with this one. Over TLS where it is given a certificate. */
export async function startReceiver(certificates?: Certificates): Promise<Receiver> {
  const child = startChild('receiver.ts', certificates === undefined ? [] : [certificates.fileFor([host])])
  const command = (value: Command): void => child.tell(value)
  const port = Number(await child.next())
  return {
    origin: `${certificates === undefined ? 'http' : 'https'}://${host}:${port}`,
    begin: (run) => command({ kind: 'begin', ...run }),
    watch: (pid) => command({ kind: 'watch', pid }),
    async report() {
      const question: Command = { kind: 'report' }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the only message that it sends when asked
      return (await child.ask(question)) as Report
    },
    stop: () => child.stop(),
  }
}
