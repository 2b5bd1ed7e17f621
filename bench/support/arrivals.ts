import { monotonicUs } from './clock.ts'
import type { GroupReport, Latency, Progress, RecorderReport, Recording, Span } from './recorder-process.ts'
import { SignatureCheck } from './signature-check.ts'
import { readStamps } from './stamped-messages.ts'
import { percentile } from './statistics.ts'

/** `messages`: those of all requests, and the requests without one. */
type Counts = { requests: number; messages: number; distinct: number }

/**
 * Records everything that arrives in a run. Keeps each single time until the end, so that percentiles are exact.
 */
export class Arrivals {
  readonly #special: ReadonlyMap<number, { index: number; answerAfterMs: number | 'never' }>
  readonly #signatures: SignatureCheck
  /** When each message was produced. The index of this list and of the next two is the message number. */
  readonly #producedUs: Float64Array
  /** When each message arrived for the first time, or 0 for a message that hasn't arrived. */
  readonly #arrivedUs: Float64Array
  /** The place of each message's destination in `special`, or -1 for the others. */
  readonly #group: Int32Array
  readonly #others: Counts = newCounts()
  readonly #specialCounts: readonly Counts[]
  readonly #connectedUs: number[] = []
  readonly #utilizationBefore = performance.eventLoopUtilization()
  #unknown = 0

  constructor({ messages, secret, special }: Recording) {
    this.#signatures = new SignatureCheck(secret)
    this.#special = new Map(
      special.map(({ destination, answerAfterMs }, index) => [destination, { index, answerAfterMs }]),
    )
    this.#specialCounts = special.map(newCounts)
    this.#producedUs = new Float64Array(messages)
    this.#arrivedUs = new Float64Array(messages)
    this.#group = new Int32Array(messages)
  }

  connected(): void {
    this.#connectedUs.push(monotonicUs())
  }

  /** Records a request. Returns after how many milliseconds to answer it. */
  take(destination: number, head: string, body: Buffer): number | 'never' {
    const special = this.#special.get(destination)
    const counts = (special === undefined ? undefined : this.#specialCounts[special.index]) ?? this.#others
    counts.requests++
    this.#signatures.show(head, body)
    const stamps = readStamps(body)
    counts.messages += Math.max(1, stamps.length)
    if (stamps.length === 0) this.#unknown++
    for (const { number, atUs } of stamps) {
      const before = this.#arrivedUs[number]
      if (before === undefined) this.#unknown++
      if (before !== 0) continue
      counts.distinct++
      this.#arrivedUs[number] = monotonicUs()
      this.#producedUs[number] = atUs
      this.#group[number] = special?.index ?? -1
    }
    if (special === undefined) return 0
    return special.answerAfterMs
  }

  progress(): Progress {
    return {
      others: this.#others.distinct,
      special: this.#specialCounts.map(({ distinct }) => distinct),
    }
  }

  report(window: Span): RecorderReport {
    return {
      others: this.#reportGroup(-1, this.#others, window),
      special: this.#specialCounts.map((counts, index) => this.#reportGroup(index, counts, window)),
      unknown: this.#unknown,
      signatures: this.#signatures.counts,
      connectionsInWindow: this.#connectedUs.filter((atUs) => isWithin(atUs, window)).length,
      secondHalfPerS: this.#secondHalfPerS(),
      utilization: performance.eventLoopUtilization(this.#utilizationBefore).utilization,
    }
  }

  #reportGroup(group: number, { requests, messages, distinct }: Counts, window: Span): GroupReport {
    const latenciesMs: number[] = []
    const seconds = Math.ceil((window.untilUs - window.fromUs) / 1_000_000)
    const bySecond = Array.from({ length: seconds }, (): number[] => [])
    let inWindow = 0
    let lastArrivalUs = 0
    for (const [number, arrivedUs] of this.#arrivedUs.entries()) {
      if (arrivedUs === 0 || this.#group[number] !== group) continue
      const producedUs = this.#producedUs[number] ?? 0
      if (isWithin(arrivedUs, window)) inWindow++
      if (isWithin(producedUs, window)) {
        const latencyMs = (arrivedUs - producedUs) / 1_000
        latenciesMs.push(latencyMs)
        const second = Math.floor((producedUs - window.fromUs) / 1_000_000)
        bySecond[second]?.push(latencyMs)
      }
      lastArrivalUs = Math.max(lastArrivalUs, arrivedUs)
    }
    const latency = latencyOf(latenciesMs, bySecond)
    return {
      requests,
      distinct,
      repeats: messages - distinct,
      inWindow,
      latency,
      lastArrivalUs,
    }
  }

  #secondHalfPerS(): number {
    const times = this.#arrivedUs.filter((atUs) => atUs > 0).sort()
    const middle = Math.floor(times.length / 2)
    const tookUs = (times.at(-1) ?? Number.NaN) - (times[middle] ?? Number.NaN)
    return ((times.length - 1 - middle) / tookUs) * 1_000_000
  }
}

function newCounts(): Counts {
  return { requests: 0, messages: 0, distinct: 0 }
}

function isWithin(atUs: number, { fromUs, untilUs }: Span): boolean {
  return atUs >= fromUs && atUs < untilUs
}

function latencyOf(latenciesMs: readonly number[], bySecond: readonly (readonly number[])[]): Latency {
  const sorted = Float64Array.from(latenciesMs).sort()
  return {
    samples: sorted.length,
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    p999: percentile(sorted, 0.999),
    max: percentile(sorted, 1),
    p99BySecond: bySecond.map((second) => percentile(Float64Array.from(second).sort(), 0.99)),
  }
}
