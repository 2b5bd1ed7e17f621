import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { BenchmarkFailure } from './failure.ts'

/** A process that is measured. Its output goes to a file, as a log would. */
export type SenderProcess = {
  readonly pid: number
  readonly isRunning: boolean
  /** Resolves when the process has ended, with its exit code, or with null if a signal has ended it. */
  readonly ended: Promise<number | null>
  /** Returns all output of the process so far. */
  output(): string
  /** Sends SIGTERM, and SIGKILL 20 s later if the process still runs. Resolves as `ended`. */
  stop(): Promise<number | null>
}

const stopTimeoutMs = 20_000
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

type SenderOptions = { outputFile: string; variables?: Record<string, string> }

/** Starts Node with the arguments. The process gets only the given variables, PATH and HOME. */
export function startSender(args: readonly string[], options: SenderOptions): SenderProcess {
  return startProgram(process.execPath, args, options)
}

/** Starts a program as `startSender` starts Node. Fails if the program doesn't exist. */
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
