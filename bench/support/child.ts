import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { BenchmarkFailure } from './failure.ts'

/** A child process that runs a script. It answers commands, and ends with this process. */
export type Child = {
  readonly pid: number
  /** Resolves with the next message of the child. Only one caller may wait at a time. */
  next(): Promise<unknown>
  tell(command: object): void
  /** Sends a command to the child, and resolves with the next message of the child. */
  ask(command: object): Promise<unknown>
  stop(): Promise<void>
}

/** Starts a script in a child process. The path of `script` is relative to this folder. */
export function startChild(script: string, args: readonly string[] = []): Child {
  const child = fork(join(import.meta.dirname, script), [...args], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // This setting sends millions of numbers in binary form and not as text.
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
