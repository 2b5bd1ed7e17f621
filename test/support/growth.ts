import process from 'node:process'

/** How much the CPU time of some work grows if its input grows eight times. */
export type Growth = {
  /** The size of the smaller input. */
  readonly n: number
  /** The CPU times of the work with the smaller and with the larger input, in milliseconds. */
  readonly ms: number
  readonly eightfoldMs: number
}

/** A run that takes less than this says little, because most of it is overhead. */
const enoughMs = 0.25
/** Runs are repeated for this long, because the system counts CPU time in steps of a few milliseconds. */
const leastMeasuredMs = 10
const tries = 5

/**
 * Measures how the CPU time of `make(n)` grows. Doubles `n` from 64 on, until a run takes long enough, or
 * until eight times `n` would be more than `to`. If the time grows more than `most` times, measures again,
 * because other programs may have slowed down the run.
 */
export function growthOf(make: (n: number) => () => unknown, to: number, most: number): Growth {
  let n = 64
  let work = make(n)
  while (16 * n <= to && onceMs(work) < enoughMs) {
    n *= 2
    work = make(n)
  }
  const eightfold = make(8 * n)
  let ms = cpuMs(work)
  let eightfoldMs = cpuMs(eightfold)
  for (let at = 1; at < tries && eightfoldMs > most * ms; at++) {
    eightfoldMs = Math.min(eightfoldMs, cpuMs(eightfold))
    ms = Math.max(ms, cpuMs(work))
  }
  return { n, ms, eightfoldMs }
}

function onceMs(work: () => unknown): number {
  const startedMs = performance.now()
  work()
  return performance.now() - startedMs
}

/** Returns the CPU time of one run, in milliseconds. */
function cpuMs(work: () => unknown): number {
  const before = process.threadCpuUsage()
  for (let runs = 1; ; runs++) {
    work()
    const { user, system } = process.threadCpuUsage(before)
    const ms = (user + system) / 1_000
    if (ms >= leastMeasuredMs) return ms / runs
  }
}
