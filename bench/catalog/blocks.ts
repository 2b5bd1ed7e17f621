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
  /** The longest collection of garbage, by the clock. */
  readonly gcMs: number
}

const everyMs = 1

/** Follows the blocks of this thread's event loop, from the first call of `take`. */
export class Blocks {
  readonly #delays = monitorEventLoopDelay({ resolution: everyMs })
  readonly #collections = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) this.#gcMs = Math.max(this.#gcMs, duration)
  })
  #cpuMs = 0
  #longest = { ms: 0, cpuMs: 0 }
  #gcMs = 0
  #before = { atMs: performance.now(), cpu: process.threadCpuUsage() }

  constructor() {
    this.#delays.enable()
    this.#collections.observe({ entryTypes: ['gc'] })
    setInterval(() => this.#tick(), everyMs).unref()
  }

  /** Returns the longest blocks since the last call. */
  take(): Blocked {
    this.#tick()
    const cpuOfLongestMs = this.#longest.cpuMs
    const taken = { ms: this.#delays.max / 1e6, cpuMs: this.#cpuMs, cpuOfLongestMs, gcMs: this.#gcMs }
    this.#delays.reset()
    this.#cpuMs = 0
    this.#longest = { ms: 0, cpuMs: 0 }
    this.#gcMs = 0
    return taken
  }

  #tick(): void {
    const { atMs, cpu } = this.#before
    const { user, system } = process.threadCpuUsage(cpu)
    const [ms, cpuMs] = [performance.now() - atMs, (user + system) / 1_000]
    this.#cpuMs = Math.max(this.#cpuMs, cpuMs)
    if (ms > this.#longest.ms) this.#longest = { ms, cpuMs }
    this.#before = { atMs: performance.now(), cpu: process.threadCpuUsage() }
  }
}

/** Returns the longest of the blocks of several processes. */
export function longestOf(all: readonly Blocked[]): Blocked {
  const longest = all.toSorted((one, other) => other.ms - one.ms)[0]
  return {
    ms: longest?.ms ?? NaN,
    cpuOfLongestMs: longest?.cpuOfLongestMs ?? NaN,
    cpuMs: Math.max(...all.map(({ cpuMs }) => cpuMs)),
    gcMs: Math.max(...all.map(({ gcMs }) => gcMs)),
  }
}
