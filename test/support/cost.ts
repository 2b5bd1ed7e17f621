import process from 'node:process'

/**
 * What work costs, for tests and benchmarks. The measure is the CPU time of this thread, which stands still
 * while other programs have the CPU. Other programs can still make work dearer, because they use the same
 * caches, and keep the threads waiting that compile code and collect garbage. They can't make it cheaper. So
 * work is measured several times, and the least counts.
 */

/** Work is repeated for this long, because the system counts CPU time in steps of a few milliseconds. */
const measuredMs = 6
/** Work that takes less says nothing, because the caches of the machine decide how long it takes. */
const leastMs = 3
/** Work that takes this long isn't measured with a larger input, and not often. */
const longMs = 1_500
const triesIfLong = 2
const turns = 2
/** The first of these tries may also cost the compilation of the code. */
const mostTries = 10

/** Returns the CPU time that `work` takes, in milliseconds. */
export function cpuMsOf(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

/** Returns the least result of some tries. The first result that is below `enough` ends them. */
export function leastOf(enough: number, measure: () => number, tries = mostTries): number {
  let least = Infinity
  for (let tried = 0; tried < tries && least >= enough; tried++) least = Math.min(least, measure())
  return least
}

/**
 * Returns the CPU time that `work` takes in the cheapest of some tries, in milliseconds. See `leastOf`. Use it
 * for work of more than some 50 ms, and `costRatio` or `growthOf` for other work.
 */
export function leastCpuMs(enough: number, work: () => unknown): number {
  return leastOf(enough, () => cpuMsOf(work))
}

/**
 * Returns how many times as much CPU time `work` takes as `unit`, in the cheapest of some tries. See
 * `leastOf`. Both are measured by turns, because the speed of a shared machine changes from second to second.
 */
export function costRatio(work: () => unknown, unit: () => unknown, enough: number): number {
  return leastOf(enough, () => {
    let [ms, unitMs] = [0, 0]
    for (let turn = 0; turn < turns; turn++) {
      ms += cpuMsOfRun(work)
      unitMs += cpuMsOfRun(unit)
    }
    return ms / unitMs
  })
}

/**
 * Measures how the CPU time of `make(n)` grows. Begins with `n` = `to / 64`, and makes `n` eight times as
 * large until it is `to`, or until the work takes long. Returns how many times as long the work takes with
 * the largest `n` as with the one before, in the cheapest of some tries. Returns 1 if the work takes hardly
 * any time. See `leastOf`.
 */
export function growthOf(make: (n: number) => () => unknown, to: number, enough: number): number {
  let n = to / 64
  let work = make(n)
  let ms = cpuMsOfRun(work)
  for (;;) {
    n *= 8
    const larger = make(n)
    const largerMs = cpuMsOfRun(larger)
    if (n < to && largerMs <= longMs) {
      work = larger
      ms = largerMs
      continue
    }
    const growth = growthBetween(ms, largerMs)
    if (growth < enough) return growth
    const again = (): number => growthBetween(cpuMsOfRun(work), cpuMsOfRun(larger))
    return leastOf(enough, again, largerMs > longMs ? triesIfLong : mostTries)
  }
}

function growthBetween(ms: number, largerMs: number): number {
  return largerMs < leastMs ? 1 : largerMs / ms
}

/** Returns the CPU time of one run, in milliseconds, measured over as many runs as the measure needs. */
function cpuMsOfRun(work: () => unknown): number {
  const before = process.threadCpuUsage()
  for (let runs = 1; ; runs++) {
    work()
    const { user, system } = process.threadCpuUsage(before)
    const ms = (user + system) / 1_000
    if (ms >= measuredMs) return ms / runs
  }
}
