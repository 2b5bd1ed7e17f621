import { writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { BenchmarkFailure } from '../support/failure.ts'
import { plainKafka } from '../support/plain-kafka.ts'
import { cpuUsOf } from '../support/process-family.ts'
import type { RunningSender } from '../support/running-worker.ts'
import { startProgram, type SenderProcess } from '../support/sender-process.ts'
import type { Program } from './programs.ts'

/** The task of a program that isn't Sluice. */
export type Task = {
  brokers: readonly string[]
  topic: string
  group: string
  /** A file that `writeUrls` has written. */
  urlsFile: string
  inFlight: number
  timeoutMs: number
  outputFile: string
}

/** Writes the URLs of the destinations 0 to `count` - 1 to a file, one a line. */
export function writeUrls(file: string, count: number, urlOf: (destination: number) => string): void {
  writeFileSync(file, Array.from({ length: count }, (_, number) => `${urlOf(number)}\n`).join(''))
}

export function startTask(program: Program, task: Task): SenderProcess {
  const { brokers, topic, group, urlsFile, inFlight, timeoutMs, outputFile } = task
  const args = [brokers.join(','), topic, group, urlsFile, String(inFlight), String(timeoutMs)]
  return startProgram(program.command, [...program.args, ...args], { outputFile })
}

/** Starts the program. Resolves when it has its partitions. A worker calls itself ready at the same point. */
export async function startPeer(program: Program, task: Task): Promise<RunningSender> {
  const sender = startTask(program, task)
  const failure = (problem: string): BenchmarkFailure =>
    new BenchmarkFailure(`${task.group} ${problem}. Its output:\n${endOf(sender.output())}`)
  try {
    await joined(task, sender, failure)
  } catch (error) {
    if (sender.isRunning) await sender.stop()
    throw error
  }
  return {
    cpuUs: () => cpuUsOf(sender.pid),
    async stop() {
      if (!sender.isRunning) throw failure('ended by itself')
      await sender.stop()
      return sender.output()
    },
    abandon: async () => void (sender.isRunning && (await sender.stop())),
  }
}

const readyTimeoutMs = 60_000
const pollMs = 200
const shownLines = 20

async function joined(
  { brokers, group }: Task,
  sender: SenderProcess,
  failure: (problem: string) => BenchmarkFailure,
): Promise<void> {
  const admin = plainKafka(brokers).admin()
  await admin.connect()
  try {
    const deadlineMs = performance.now() + readyTimeoutMs
    for (;;) {
      const { groups } = await admin.describeGroups([group])
      if (groups.some(({ state, members }) => state === 'Stable' && members.length === 1)) return
      if (!sender.isRunning) throw failure('ended at its start')
      if (performance.now() > deadlineMs) throw failure(`has no partitions after ${readyTimeoutMs / 1_000} s`)
      await delay(pollMs)
    }
  } finally {
    await admin.disconnect()
  }
}

function endOf(output: string): string {
  return output.trimEnd().split('\n').slice(-shownLines).join('\n')
}
