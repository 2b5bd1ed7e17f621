import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { BenchmarkFailure } from './failure.ts'

/** A moment of a run: the sender's CPU time so far, when so many distinct messages had come. */
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
  /** `http://127.0.0.1:PORT` */
  origin: string
  /** Forgets all before; `expected` messages are awaited. With a secret, one in 100 signatures is checked. */
  begin(run: { expected: number; secret: string | undefined }): void
  /** Names the process whose CPU time is noted; at the latest before its first delivery. */
  watch(pid: number): void
  report(): Promise<Report>
  stop(): Promise<void>
}

/** Starts the receiver as a process of its own, which ends with this one. */
export async function startReceiver(): Promise<Receiver> {
  const child = fork(join(import.meta.dirname, 'receiver.ts'), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit')
  const command = (value: Command): void => void child.send(value)

  async function nextMessage(): Promise<unknown> {
    const lost = exited.then(([code]: unknown[]) => {
      throw new BenchmarkFailure(`the receiver ended with code ${String(code)}`)
    })
    const [message]: unknown[] = await Promise.race([once(child, 'message'), lost])
    return message
  }

  const port = Number(await nextMessage())
  return {
    origin: `http://127.0.0.1:${port}`,
    begin: (run) => command({ kind: 'begin', ...run }),
    watch: (pid) => command({ kind: 'watch', pid }),
    async report() {
      const reply = nextMessage()
      command({ kind: 'report' })
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the only message that it sends when asked
      return (await reply) as Report
    },
    async stop() {
      child.disconnect()
      await exited
    },
  }
}
