import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { BenchmarkFailure } from './failure.ts'

/** A process under measurement. Its output goes to a file, as a log would. */
export type SenderProcess = {
  readonly pid: number
  readonly isRunning: boolean
  /** The exit code when it ends by itself; null when a signal ended it. */
  readonly ended: Promise<number | null>
  /** All that it has written so far. */
  output(): string
  /** Sends SIGTERM, after 20 s SIGKILL, and resolves as `ended`. */
  stop(): Promise<number | null>
}

const stopTimeoutMs = 20_000
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

type SenderOptions = { outputFile: string; variables?: Record<string, string> }

/** Starts `node ARGUMENTS` with exactly the variables that are given, beside PATH and HOME. */
export function startSender(args: readonly string[], options: SenderOptions): SenderProcess {
  return startProgram(process.execPath, args, options)
}

/** The same for a program that isn't Node. It must be there. */
export function startProgram(
  command: string,
  args: readonly string[],
  { outputFile, variables = {} }: SenderOptions,
): SenderProcess {
  const output = openSync(outputFile, 'w')
  const child = spawn(command, args, {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...variables },
    stdio: ['ignore', output, output],
  })
  closeSync(output)
  if (child.pid === undefined) throw new BenchmarkFailure(`${command} ${args.join(' ')} did not start`)
  running.add(child)
  const ended = once(child, 'exit').then(() => {
    running.delete(child)
    return child.exitCode
  })
  return {
    pid: child.pid,
    get isRunning() {
      return child.exitCode === null && child.signalCode === null
    },
    ended,
    output: () => readFileSync(outputFile, 'utf8'),
    async stop() {
      const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
      child.kill('SIGTERM')
      const exitCode = await ended
      clearTimeout(timer)
      return exitCode
    },
  }
}
