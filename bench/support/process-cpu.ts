import { readFileSync } from 'node:fs'
import { BenchmarkFailure } from './failure.ts'

/** `USER_HZ`, the unit of times in /proc: 100 on every Linux that Node runs on. */
const ticksPerSecond = 100

/**
 * User and system time that a process has used so far, all its threads together, in microseconds and in steps
 * of 10 ms. From /proc/PID/stat, fields 14 and 15 (proc(5)), so Linux only.
 */
export function cpuUsOf(pid: number): number {
  const stat = readStat(pid)
  // Field 2 is the name in brackets, which may hold anything: count from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1_000_000
}

function readStat(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch (error) {
    throw new BenchmarkFailure(`/proc/${pid}/stat can't be read: benchmarks need Linux`, { cause: error })
  }
}
