import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { BenchmarkFailure } from './failure.ts'

/** A script of this folder in a process of its own, which answers what it is asked and ends with this process. */
export type Child = {
  readonly pid: number
  /** What it sends next. One may wait at a time. */
  next(): Promise<unknown>
  /** Sends it `command`. */
  tell(command: object): void
  /** Sends it `command`, and gives what it sends next. */
  ask(command: object): Promise<unknown>
  stop(): Promise<void>
}

export function startChild(script: string, args: readonly string[] = []): Child {
  const child = fork(join(import.meta.dirname, script), [...args], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // Millions of numbers arrive as they are, and not as text.
    serialization: 'advanced',
  })
  const exited = once(child, 'exit')
  const tell = (command: object): void => void child.send(command)

  async function next(): Promise<unknown> {
    const lost = exited.then(([code]: unknown[]) => {
      throw new BenchmarkFailure(`${script} ended with code ${String(code)}`)
    })
    const [message]: unknown[] = await Promise.race([once(child, 'message'), lost])
    return message
  }

  return {
    pid: child.pid ?? -1,
    next,
    tell,
    ask(command) {
      const reply = next()
      tell(command)
      return reply
    },
    async stop() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}
