import process from 'node:process'

/**
 * Does a work, and returns the CPU time of the longest turn of the event loop meanwhile, in milliseconds. Other
 * than the time by the clock, it doesn't depend on what else the machine does. It includes the garbage collector's
 * work in this thread.
 */
export async function longestTurnMs(work: () => Promise<void>): Promise<number> {
  let longestUs = 0
  let isOver = false
  let before = process.threadCpuUsage()
  const turn = (): void => {
    const { user, system } = process.threadCpuUsage(before)
    longestUs = Math.max(longestUs, user + system)
    before = process.threadCpuUsage()
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  await work()
  isOver = true
  turn()
  return longestUs / 1_000
}
