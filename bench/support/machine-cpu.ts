import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { cpuUsOf } from './process-family.ts'

/**
 * Records how busy the machine is. Returns a function that returns the share of the machine (0 to 1) that
 * other programs have used since the call. Other programs are all except this process and its children. Kafka
 * in Docker or elsewhere counts as another program.
 */
export function watchOthers(): () => number {
  const startedMs = performance.now()
  const before = busyUs() - cpuUsOf(process.pid)
  return () => {
    const capacityUs = (performance.now() - startedMs) * 1_000 * availableParallelism()
    return Math.max(0, busyUs() - cpuUsOf(process.pid) - before) / capacityUs
  }
}

/**
 * Returns the busy time of the machine in microseconds, from the first line of /proc/stat (proc(5)). Its
 * fields are user, nice, system, idle, iowait, irq, softirq and steal, in 1/100 s.
 */
function busyUs(): number {
  const [, ...ticks] = readFileSync('/proc/stat', 'latin1').split('\n', 1)[0]?.trim().split(/ +/) ?? []
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = ticks.map(Number)
  return (user + nice + system + irq + softirq + steal) * 10_000
}
