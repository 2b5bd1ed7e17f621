import { setTimeout as delay } from 'node:timers/promises'
import { BenchmarkFailure } from './failure.ts'
import type { Mark, Receiver, Report } from './receiver-process.ts'
import type { SenderProcess } from './sender-process.ts'

/** One run of one sender. CPU time is user and system time of its process, per delivery. */
export type Measurement = {
  deliveriesPerS: number
  cpuUs: number
  /** The same for the second half of the run, when the code is compiled. */
  warmDeliveriesPerS: number
  warmCpuUs: number
}

export type MeasuredRun = {
  /** For messages: which sender. */
  name: string
  receiver: Receiver
  /** How many messages there are; each must come exactly once. */
  expected: number
  /** When the sender signs: with what. */
  secret: string | undefined
  start(): SenderProcess
  /** Looks at the sender after it was stopped, when so many deliveries had come; says what is wrong. */
  faultOf(sender: SenderProcess, exitCode: number | null, deliveries: number): Promise<string | undefined>
}

const pollMs = 200
const idleTimeoutMs = 30_000
/** Of a failed sender's output. */
const shownLines = 40

/**
 * Starts a sender, waits until each message has come, and stops it. Fails when one is missing, too many came twice, or one
 * was wrongly signed, when nothing more comes for half a minute, or when the sender ends before.
 */
export async function measure(run: MeasuredRun): Promise<Measurement> {
  const { name, receiver, expected, secret } = run
  receiver.begin({ expected, secret })
  const sender = run.start()
  receiver.watch(sender.pid)
  await allDelivered(run, sender)
  const exitCode = await sender.stop()
  const report = await receiver.report()
  const fault = faultOfReport(report, run) ?? (await run.faultOf(sender, exitCode, report.deliveries))
  if (fault !== undefined) throw failure(name, fault, sender)
  return measurementOf(report)
}

async function allDelivered({ name, receiver, expected }: MeasuredRun, sender: SenderProcess): Promise<void> {
  let distinct = 0
  let progressAtMs = performance.now()
  while (distinct < expected) {
    await delay(pollMs)
    const wasRunning = sender.isRunning
    const report = await receiver.report()
    if (report.distinct > distinct) progressAtMs = performance.now()
    distinct = report.distinct
    const isStuck = performance.now() - progressAtMs > idleTimeoutMs
    if (distinct < expected && (isStuck || !wasRunning)) {
      await sender.stop()
      const why = wasRunning ? `nothing came for ${idleTimeoutMs / 1000} s` : 'it ended'
      throw failure(name, `${why} with ${distinct} of ${expected} messages delivered`, sender)
    }
  }
}

function faultOfReport(report: Report, { expected, secret }: MeasuredRun): string | undefined {
  const { distinct, repeats, unknown, deliveries, signatures } = report
  if (distinct !== expected || unknown > 0 || repeats > 0) {
    return `${expected} messages, and ${deliveries} deliveries: ${distinct} distinct, ${repeats} repeats, ${unknown} unknown`
  }
  if (secret === undefined) return undefined
  if (signatures.wrong > 0 || signatures.checked === 0) {
    return `${signatures.wrong} of ${signatures.checked} checked signatures are wrong`
  }
  return undefined
}

function measurementOf({ marks }: Report): Measurement {
  const [first, middle, last] = marks
  if (first === undefined || middle === undefined || last === undefined) {
    throw new BenchmarkFailure('a run needs at least three messages')
  }
  const all = between(first, last)
  const warm = between(middle, last)
  return {
    deliveriesPerS: all.perS,
    cpuUs: all.cpuUs,
    warmDeliveriesPerS: warm.perS,
    warmCpuUs: warm.cpuUs,
  }
}

function between(from: Mark, to: Mark): { perS: number; cpuUs: number } {
  const count = to.distinct - from.distinct
  return { perS: (count / (to.atMs - from.atMs)) * 1000, cpuUs: (to.cpuUs - from.cpuUs) / count }
}

function failure(name: string, problem: string, sender: SenderProcess): BenchmarkFailure {
  const lines = sender.output().trimEnd().split('\n')
  const telling = lines.filter((line) => !line.includes('"verdict":"delivered"')).slice(-shownLines)
  return new BenchmarkFailure([`${name}: ${problem}. Its output, without successes:`, ...telling].join('\n'))
}
