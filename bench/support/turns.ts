import { setTimeout as delay } from 'node:timers/promises'
import { monotonicMs } from './clock.ts'
import { BenchmarkFailure } from './failure.ts'
import { signalFamily } from './process-family.ts'
import type { Mark, Receiver, Report } from './receiver-process.ts'
import type { SenderProcess } from './sender-process.ts'
import { median } from './statistics.ts'

/** One run of one sender. CPU time is user and system time of its processes, per delivery; rates are of the time of its turns. */
export type Measurement = {
  deliveriesPerS: number
  cpuUs: number
  /** The same for the second half of the run, when the code is compiled. */
  warmDeliveriesPerS: number
  warmCpuUs: number
  /** New connections for each delivery. */
  connectionsEach: number
}

/** The medians of several runs. */
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

/** For a line of progress. */
export function describe({ deliveriesPerS, cpuUs, warmCpuUs, connectionsEach }: Measurement): string {
  return `${Math.round(deliveriesPerS)}/s, ${cpuUs.toFixed(1)} µs of CPU each, ${warmCpuUs.toFixed(1)} in the second half, ${connectionsEach.toFixed(4)} connections each`
}

export type MeasuredSender = {
  /** For messages: which sender. */
  name: string
  /** Its own. */
  receiver: Receiver
  /** When the sender signs: with what. */
  secret: string | undefined
  start(): SenderProcess
  /** What keeps the machine busy in its turns, and isn't counted. */
  startBeside?(): readonly SenderProcess[]
  /** Looks at the sender after it was stopped, when so many deliveries had come; says what is wrong. */
  faultOf(sender: SenderProcess, exitCode: number | null, deliveries: number): Promise<string | undefined>
}

/** How often each sender comes to its turn in a run. */
const turns = 80
const pollMs = 10
const idleTimeoutMs = 30_000
/** Of a failed sender's output. */
const shownLines = 40

/**
 * Measures senders beside each other: each sends `expected` messages to its receiver, a part of them at a time, and stands still
 * (SIGSTOP) while the others have their turns. What a machine that others share gives in one moment and not in the next is so the
 * same for all: where each had its whole run at once, a sender took half as much again as a minute before. Fails when a message is
 * missing, one came twice, or one was wrongly signed, when nothing comes for half a minute, or when a sender ends before.
 */
export async function measureByTurns(
  senders: readonly MeasuredSender[],
  expected: number,
): Promise<Map<string, Measurement>> {
  const runs: TurnTaker[] = []
  try {
    // Until all are at work: to start takes some of them seconds.
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

/** A sender that works when it is its turn. */
class TurnTaker {
  readonly #sender: MeasuredSender
  readonly #process: SenderProcess
  /** With `#process`, all that works in its turns. */
  readonly #all: readonly SenderProcess[]
  readonly #expected: number
  /** The times of its turns. */
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

  /** Gives it a turn, which ends when so many distinct messages have come in all. */
  async sendUntil(count: number): Promise<void> {
    if (this.#spans.length > 0) this.#signal('SIGCONT')
    const fromMs = monotonicMs()
    await this.#delivered(count)
    this.#signal('SIGSTOP')
    this.#spans.push({ fromMs, toMs: monotonicMs() })
  }

  /** One that has ended by itself is found at its end. */
  #signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    for (const { isRunning, pid } of this.#all) if (isRunning) signalFamily(pid, signal)
  }

  /** Stops all that run, and says how the sender ended. */
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

  /** Stops it as an operator would, and says what it took. */
  async end(): Promise<Measurement> {
    const exitCode = await this.#stop()
    const report = await this.#sender.receiver.report()
    const fault =
      this.#faultOf(report) ?? (await this.#sender.faultOf(this.#process, exitCode, report.deliveries))
    if (fault !== undefined) throw this.#failure(fault)
    return this.#measurementOf(report)
  }

  /** Ends it, whatever comes of it. */
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
