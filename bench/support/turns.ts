import { setTimeout as delay } from 'node:timers/promises'
import { monotonicMs } from './clock.ts'
import { BenchmarkFailure } from './failure.ts'
import { signalFamily } from './process-family.ts'
import type { Mark, Receiver, Report } from './receiver-process.ts'
import type { SenderProcess } from './sender-process.ts'
import { median } from './statistics.ts'

/**
 * The figures of one run of one sender. CPU times are the user and system time of all its processes for each
 * delivery. Rates are relative to the time of the sender's turns.
 */
export type Measurement = {
  deliveriesPerS: number
  cpuUs: number
  /** The rate in the second half of the run, when the code is compiled. */
  warmDeliveriesPerS: number
  /** The CPU time for each delivery in the second half of the run. */
  warmCpuUs: number
  /** The number of new connections for each delivery. */
  connectionsEach: number
}

/** Returns the medians of several runs. */
export function medianOf(all: readonly Measurement[]): Measurement {
  const of = (pick: (one: Measurement) => number): number => median(all.map(pick))
  return {
    deliveriesPerS: of(({ deliveriesPerS }) => deliveriesPerS),
    cpuUs: of(({ cpuUs }) => cpuUs),
    warmDeliveriesPerS: of(({ warmDeliveriesPerS }) => warmDeliveriesPerS),
    warmCpuUs: of(({ warmCpuUs }) => warmCpuUs),
    connectionsEach: of(({ connectionsEach }) => connectionsEach),
  }
}

/** Returns a text for a line of progress. */
export function describe({ deliveriesPerS, cpuUs, warmCpuUs, connectionsEach }: Measurement): string {
  return `${Math.round(deliveriesPerS)}/s, ${cpuUs.toFixed(1)} µs of CPU each, ${warmCpuUs.toFixed(1)} in the second half, ${connectionsEach.toFixed(4)} connections each`
}

export type MeasuredSender = {
  /** The name of the sender in messages. */
  name: string
  /** The receiver that only this sender uses. */
  receiver: Receiver
  /** The secret with which the sender signs, or `undefined` if it doesn't sign. */
  secret: string | undefined
  start(): SenderProcess
  /**
   * Starts processes that keep the machine busy during the turns of the sender. They don't count for its CPU
   * time.
   */
  startBeside?(): readonly SenderProcess[]
  /**
   * Checks the sender after it was stopped. `deliveries` is the number of its deliveries. Resolves with the
   * fault, or with `undefined`.
   */
  faultOf(sender: SenderProcess, exitCode: number | null, deliveries: number): Promise<string | undefined>
}

/** The number of turns of each sender in a run. */
const turns = 80
const pollMs = 10
const idleTimeoutMs = 30_000
/** The number of lines of a failed sender's output that are shown. */
const shownLines = 40

/**
 * Measures senders by turns. Each sender sends `expected` messages to its receiver, a part of them in each
 * turn. It is suspended (SIGSTOP) while the others have their turns. So changes in the speed of a shared
 * machine affect all senders equally. Without turns, the same sender sometimes took 1.5 times the time that
 * it had taken a minute before. Fails if a message is missing, repeated or wrongly signed, if nothing arrives
 * for half a minute, or if a sender ends too early.
 */
export async function measureByTurns(
  senders: readonly MeasuredSender[],
  expected: number,
): Promise<Map<string, Measurement>> {
  const runs: TurnTaker[] = []
  try {
    // Waits for the first message of each sender, because some senders need seconds to start.
    for (const sender of senders) {
      const run = new TurnTaker(sender, expected)
      runs.push(run)
      await run.sendUntil(1)
    }
    for (let turn = 1; turn <= turns; turn++) {
      for (const run of runs) await run.sendUntil(Math.ceil((expected * turn) / turns))
    }
    const measured = new Map<string, Measurement>()
    for (const run of runs) measured.set(run.name, await run.end())
    return measured
  } finally {
    await Promise.all(runs.map((run) => run.abandon()))
  }
}

/** A sender that works only during its turns. */
class TurnTaker {
  readonly #sender: MeasuredSender
  readonly #process: SenderProcess
  /** All processes that work in the sender's turns, including `#process`. */
  readonly #all: readonly SenderProcess[]
  readonly #expected: number
  /** The times of the sender's turns. */
  readonly #spans: { fromMs: number; toMs: number }[] = []

  constructor(sender: MeasuredSender, expected: number) {
    this.#sender = sender
    this.#expected = expected
    sender.receiver.begin({ expected, secret: sender.secret })
    this.#process = sender.start()
    this.#all = [this.#process, ...(sender.startBeside?.() ?? [])]
    sender.receiver.watch(this.#process.pid)
  }

  get name(): string {
    return this.#sender.name
  }

  /** Gives the sender a turn, which ends when `count` distinct messages have arrived in all its turns. */
  async sendUntil(count: number): Promise<void> {
    if (this.#spans.length > 0) this.#signal('SIGCONT')
    const fromMs = monotonicMs()
    await this.#delivered(count)
    this.#signal('SIGSTOP')
    this.#spans.push({ fromMs, toMs: monotonicMs() })
  }

  /**
   * Sends a signal to all processes that still run. If the sender has ended by itself, `#delivered` or `end`
   * notices it.
   */
  #signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    for (const { isRunning, pid } of this.#all) if (isRunning) signalFamily(pid, signal)
  }

  /** Stops all processes. Returns the exit code of the sender. */
  async #stop(): Promise<number | null> {
    this.#signal('SIGCONT')
    const [exitCode] = await Promise.all(this.#all.map((one) => one.stop()))
    return exitCode ?? null
  }

  async #delivered(count: number): Promise<void> {
    let distinct = -1
    let progressAtMs = monotonicMs()
    while (distinct < count) {
      if (distinct >= 0) await delay(pollMs)
      const wasRunning = this.#process.isRunning
      const report = await this.#sender.receiver.report()
      if (report.distinct > distinct) progressAtMs = monotonicMs()
      distinct = report.distinct
      const isStuck = monotonicMs() - progressAtMs > idleTimeoutMs
      if (distinct < count && (isStuck || !wasRunning)) {
        const why = wasRunning ? `nothing came for ${idleTimeoutMs / 1000} s` : 'it ended'
        throw this.#failure(`${why} with ${distinct} of ${this.#expected} messages delivered`)
      }
    }
  }

  /** Stops the sender as an operator would, and returns its figures. */
  async end(): Promise<Measurement> {
    const exitCode = await this.#stop()
    const report = await this.#sender.receiver.report()
    const fault =
      this.#faultOf(report) ?? (await this.#sender.faultOf(this.#process, exitCode, report.deliveries))
    if (fault !== undefined) throw this.#failure(fault)
    return this.#measurementOf(report)
  }

  /** Ends all processes, without a check of how they end. */
  async abandon(): Promise<void> {
    if (this.#all.some(({ isRunning }) => isRunning)) await this.#stop()
  }

  #faultOf({ distinct, repeats, unknown, deliveries, signatures }: Report): string | undefined {
    if (distinct !== this.#expected || unknown > 0 || repeats > 0) {
      return `${this.#expected} messages, and ${deliveries} deliveries: ${distinct} distinct, ${repeats} repeats, ${unknown} unknown`
    }
    if (this.#sender.secret === undefined) return undefined
    if (signatures.wrong > 0 || signatures.checked === 0) {
      return `${signatures.wrong} of ${signatures.checked} checked signatures are wrong`
    }
    return undefined
  }

  #measurementOf({ marks, connections, deliveries }: Report): Measurement {
    const [first, middle, last] = marks
    if (first === undefined || middle === undefined || last === undefined) {
      throw new BenchmarkFailure('a run needs at least three messages')
    }
    const all = this.#between(first, last)
    const warm = this.#between(middle, last)
    return {
      deliveriesPerS: all.perS,
      cpuUs: all.cpuUs,
      warmDeliveriesPerS: warm.perS,
      warmCpuUs: warm.cpuUs,
      connectionsEach: connections / deliveries,
    }
  }

  #between(from: Mark, to: Mark): { perS: number; cpuUs: number } {
    const count = to.distinct - from.distinct
    const workedMs = this.#spans.reduce(
      (sum, { fromMs, toMs }) => sum + Math.max(0, Math.min(toMs, to.atMs) - Math.max(fromMs, from.atMs)),
      0,
    )
    return { perS: (count / workedMs) * 1000, cpuUs: (to.cpuUs - from.cpuUs) / count }
  }

  #failure(problem: string): BenchmarkFailure {
    const lines = this.#process.output().trimEnd().split('\n')
    const telling = lines.filter((line) => !line.includes('"verdict":"delivered"')).slice(-shownLines)
    return new BenchmarkFailure(
      [`${this.name}: ${problem}. Its output, without successes:`, ...telling].join('\n'),
    )
  }
}
