import process from 'node:process'

/** Work that takes less says nothing, because the caches of the machine decide how long it takes. */
const leastMs = 3
/** Work is repeated for this long, because the system counts CPU time in steps of a few milliseconds. */
const measuredMs = 6
/** Work that takes this long isn't measured with a larger input, and not often. */
const longMs = 1_500
const tries = 5
const triesIfLong = 2

/**
 * Measures how the CPU time of `make(n)` grows. Begins with `n` = `to / 64`, and makes `n` eight times as
 * large until it is `to`, or until the work takes long. Returns how many times as long the work takes with
 * the largest `n` as with the one before. If this is more than `limit`, measures again, because other programs
 * may have slowed down the work. Returns 1 if the work takes hardly any time.
 */
export function growthOf(make: (n: number) => () => unknown, to: number, limit: number): number {
  let n = to / 64
  let work = make(n)
  let ms = cpuMs(work)
  for (;;) {
    n *= 8
    const larger = make(n)
    let largerMs = cpuMs(larger)
    if (n >= to || largerMs > longMs) {
      const most = largerMs > longMs ? triesIfLong : tries
      for (let at = 1; at < most && largerMs > Math.max(leastMs, limit * ms); at++) {
        largerMs = Math.min(largerMs, cpuMs(larger))
        ms = Math.max(ms, cpuMs(work))
      }
      return largerMs < leastMs ? 1 : largerMs / ms
    }
    work = larger
    ms = largerMs
  }
}

/** Returns the CPU time of one run, in milliseconds. */
function cpuMs(work: () => unknown): number {
  const before = process.threadCpuUsage()
  for (let runs = 1; ; runs++) {
    work()
    const { user, system } = process.threadCpuUsage(before)
    const ms = (user + system) / 1_000
    if (ms >= measuredMs) return ms / runs
  }
}
