import { startChild } from './child.ts'
import type { Certificates } from './tls.ts'

/**
 * The state at a time of a run: the number of distinct messages that have arrived, and the sender's CPU time
 * so far. The time is on the monotonic clock.
 */
export type Mark = { distinct: number; atMs: number; cpuUs: number }

/**
 * What has arrived since `begin`. `deliveries`: the messages of all requests. `unknown` counts the requests
 * without the number of a message of this run.
 */
export type Report = {
  requests: number
  deliveries: number
  distinct: number
  repeats: number
  unknown: number
  connections: number
  /**
   * The number of checked signatures, and of the wrong ones among them. Without a secret, none are checked.
   */
  signatures: { checked: number; wrong: number }
  /** The marks of the first, the middle and the last message, as far as they have arrived. */
  marks: readonly Mark[]
}

export type Command =
  | { kind: 'begin'; expected: number; secret: string | undefined }
  | { kind: 'watch'; pid: number }
  | { kind: 'report' }

export type Receiver = {
  /** `http://127.0.0.1:PORT` or `https://127.0.0.1:PORT`. */
  origin: string
  /**
   * Forgets everything earlier, and awaits `expected` messages. With a secret, one in 100 signatures is
   * checked.
   */
  begin(run: { expected: number; secret: string | undefined }): void
  /** Sets the process whose CPU time is recorded. Must be called before the first delivery of the process. */
  watch(pid: number): void
  report(): Promise<Report>
  stop(): Promise<void>
}

const host = '127.0.0.1'

/**
 * Starts a process with the receiver. The process ends with this process. With `certificates` the receiver
 * uses TLS. `answerAfterMs`: after how many milliseconds it answers.
 */
export async function startReceiver(certificates?: Certificates, answerAfterMs = 0): Promise<Receiver> {
  const identities = certificates === undefined ? '' : certificates.fileFor([host])
  const child = startChild('receiver.ts', [identities, String(answerAfterMs)])
  const command = (value: Command): void => child.tell(value)
  const port = Number(await child.next())
  return {
    origin: `${certificates === undefined ? 'http' : 'https'}://${host}:${port}`,
    begin: (run) => command({ kind: 'begin', ...run }),
    watch: (pid) => command({ kind: 'watch', pid }),
    async report() {
      const question: Command = { kind: 'report' }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the child's only answer
      return (await child.ask(question)) as Report
    },
    stop: () => child.stop(),
  }
}
