const properties = { total: 12.5, items: ['a', 'b'], name: 'x'.repeat(300) }
const message = { type: 'track', userId: 'user-1', event: 'Order Completed', properties }
const body = JSON.stringify({ batch: Array.from({ length: 1_200 }, () => message) })

/**
 * Returns the CPU time, in milliseconds, that this machine needs now to parse an ordinary body of half a
 * megabyte and to write it again. Tests of cost use it as their unit, because machines differ, and the speed
 * of a shared machine changes within a second. The system counts CPU time in steps of some milliseconds, so
 * more `times` give a better figure.
 */
export function ordinaryMs(times = 10): number {
  const before = process.threadCpuUsage()
  for (let time = 0; time < times; time++) JSON.stringify(JSON.parse(body))
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000 / times
}
