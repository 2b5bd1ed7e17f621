import { openSync, readSync } from 'node:fs'
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import process from 'node:process'

/** How long an event loop stood still at most, in milliseconds. */
export type Blocked = {
  /** By the clock. It includes the time in which other programs had the processor. */
  readonly ms: number
  /** The most CPU time of the thread between two turns of its timers. This is its own work alone. */
  readonly cpuMs: number
  /** The CPU time in the longest block by the clock. */
  readonly cpuOfLongestMs: number
  /**
   * By the clock, without the time in which this thread could run and waited for a processor. `NaN`: the
   * system doesn't tell it.
   */
  readonly ownMs: number
  /** The longest collection of garbage, by the clock. */
  readonly gcMs: number
}

const everyMs = 1

/**
 * How long the main thread of this process could run and waited for a processor. Linux counts it when the
 * thread gets one, to the nanosecond.
 */
class ProcessorWaits {
  readonly #file = openOrNone('/proc/self/schedstat')
  readonly #text = Buffer.alloc(128)

  /** Since the process began. `NaN`: not known. */
  totalMs(): number {
    if (this.#file === undefined) return NaN
    const bytes = readSync(this.#file, this.#text, 0, this.#text.length, 0)
    return Number(this.#text.toString('latin1', 0, bytes).split(' ')[1]) / 1e6
  }
}

function openOrNone(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch {
    return undefined
  }
}

/** Follows the blocks of this thread's event loop, from the first call of `take`. */
export class Blocks {
  readonly #delays = monitorEventLoopDelay({ resolution: everyMs })
  readonly #collections = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) this.#gcMs = Math.max(this.#gcMs, duration)
  })
  readonly #waits = new ProcessorWaits()
  #cpuMs = 0
  #ownMs = 0
  #longest = { ms: 0, cpuMs: 0 }
  #gcMs = 0
  #before = { atMs: performance.now(), cpu: process.threadCpuUsage(), waitedMs: this.#waits.totalMs() }

  constructor() {
    this.#delays.enable()
    this.#collections.observe({ entryTypes: ['gc'] })
    setInterval(() => this.#tick(), everyMs).unref()
  }

  /** Returns the longest blocks since the last call. */
  take(): Blocked {
    this.#tick()
    const cpuOfLongestMs = this.#longest.cpuMs
    const taken = {
      ms: this.#delays.max / 1e6,
      cpuMs: this.#cpuMs,
      cpuOfLongestMs,
      ownMs: this.#ownMs,
      gcMs: this.#gcMs,
    }
    this.#delays.reset()
    this.#cpuMs = 0
    this.#ownMs = 0
    this.#longest = { ms: 0, cpuMs: 0 }
    this.#gcMs = 0
    return taken
  }

  #tick(): void {
    const { atMs, cpu, waitedMs } = this.#before
    const { user, system } = process.threadCpuUsage(cpu)
    const [ms, cpuMs] = [performance.now() - atMs, (user + system) / 1_000]
    this.#cpuMs = Math.max(this.#cpuMs, cpuMs)
    this.#ownMs = Math.max(this.#ownMs, ms - (this.#waits.totalMs() - waitedMs))
    if (ms > this.#longest.ms) this.#longest = { ms, cpuMs }
    this.#before = {
      atMs: performance.now(),
      cpu: process.threadCpuUsage(),
      waitedMs: this.#waits.totalMs(),
    }
  }
}

/** Returns the longest of the blocks of several processes. */
export function longestOf(all: readonly Blocked[]): Blocked {
  const longest = all.toSorted((one, other) => other.ms - one.ms)[0]
  return {
    ms: longest?.ms ?? NaN,
    cpuOfLongestMs: longest?.cpuOfLongestMs ?? NaN,
    cpuMs: Math.max(...all.map(({ cpuMs }) => cpuMs)),
    ownMs: Math.max(...all.map(({ ownMs }) => ownMs)),
    gcMs: Math.max(...all.map(({ gcMs }) => gcMs)),
  }
}
