import { setTimeout as delay } from 'node:timers/promises'
import { cpuUsOf } from './process-family.ts'
import { BenchmarkFailure } from './failure.ts'
import { startSender } from './sender-process.ts'
import { sluiceMain } from './topics.ts'

/** A running program that delivers messages. It runs as an operator would run it, with its log in a file. */
export type RunningSender = {
  /** Returns the user and system time of the program and its child processes so far, in microseconds. */
  cpuUs(): number
  /** Returns the text of `/metrics`. Missing for a program without metrics. */
  metrics?(): Promise<string>
  /** Ends the program as an operator would, and returns its log. Fails if the program had ended before. */
  stop(): Promise<string>
  /** Ends the program if it still runs, without a check of how it ends. */
  abandon(): Promise<void>
}

/** A running `sluice worker`. Its `stop` also fails if the exit code isn't 0. */
export type RunningWorker = RunningSender & {
  metrics(): Promise<string>
  /** The time from the start of the worker until it was ready. */
  readonly readyMs: number
}

const readyTimeoutMs = 60_000
const pollMs = 20
const shownLines = 20

/** Starts a worker. Resolves when the worker has joined its group, and so is ready. */
export async function startWorker(options: {
  outputFile: string
  variables: Record<string, string>
  nodeFlags: readonly string[]
  /** The main file of the program. Default: the main file of the sources. */
  main?: string | undefined
}): Promise<RunningWorker> {
  const startedMs = performance.now()
  const sender = startSender([...options.nodeFlags, options.main ?? sluiceMain, 'worker'], options)
  const failure = (problem: string): BenchmarkFailure => {
    const telling = sender
      .output()
      .trimEnd()
      .split('\n')
      .filter((line) => !line.includes('"msg":"attempt"'))
    const shown = telling.slice(-shownLines).join('\n')
    return new BenchmarkFailure(`the worker ${problem}. Its log, without attempts:\n${shown}`)
  }
  const deadlineMs = performance.now() + readyTimeoutMs
  const wait = async (): Promise<void> => {
    if (!sender.isRunning) throw failure('ended at its start')
    if (performance.now() > deadlineMs) throw failure(`is not ready after ${readyTimeoutMs / 1_000} s`)
    await delay(pollMs)
  }
  try {
    let port = portIn(sender.output())
    for (; port === undefined; port = portIn(sender.output())) await wait()
    const url = `http://127.0.0.1:${port}`
    while (!(await fetch(`${url}/readyz`)).ok) await wait()
    const readyMs = performance.now() - startedMs
    return {
      readyMs,
      cpuUs: () => cpuUsOf(sender.pid),
      metrics: async () => (await fetch(`${url}/metrics`)).text(),
      async stop() {
        if (!sender.isRunning) throw failure('ended by itself')
        const exitCode = await sender.stop()
        if (exitCode !== 0) throw failure(`ended with exit code ${exitCode}`)
        return sender.output()
      },
      abandon: async () => void (sender.isRunning && (await sender.stop())),
    }
  } catch (error) {
    if (sender.isRunning) await sender.stop()
    throw error
  }
}

function portIn(log: string): string | undefined {
  const line = log.split('\n').find((candidate) => candidate.includes('"msg":"worker started"'))
  return line === undefined ? undefined : /"port":(\d+)/.exec(line)?.[1]
}

/** Returns the sum of a metric in Prometheus' text format, over its series whose labels contain `labels`. */
export function sumMetric(text: string, name: string, labels: Record<string, string> = {}): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .filter((line) => wanted.every((pair) => line.includes(pair)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
