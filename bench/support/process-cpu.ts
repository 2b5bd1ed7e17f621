import { readdirSync, readFileSync } from 'node:fs'
import { BenchmarkFailure } from './failure.ts'

/** `USER_HZ`, the unit of times in /proc: 100 on every Linux that Node runs on. */
const ticksPerSecond = 100

type Stat = { parentPid: number; cpuUs: number }

/**
 * User and system time that a process and its children have used so far, all their threads together, in
 * microseconds and in steps of 10 ms a process. Children that have ended are left out. From /proc, so Linux only.
 */
export function cpuUsOf(pid: number): number {
  const own = readStat(pid)
  if (own === undefined) throw new BenchmarkFailure(`process ${pid} isn't in /proc: benchmarks need Linux`)
  const stats = allStats()
  const sumBelow = (parent: number): number =>
    stats.reduce(
      (sum, { id, stat }) => (stat.parentPid === parent ? sum + stat.cpuUs + sumBelow(id) : sum),
      0,
    )
  return own.cpuUs + sumBelow(pid)
}

function allStats(): { id: number; stat: Stat }[] {
  return readdirSync('/proc').flatMap((name) => {
    const id = Number(name)
    const stat = Number.isInteger(id) ? readStat(id) : undefined
    return stat === undefined ? [] : [{ id, stat }]
  })
}

/** Fields 4, 14 and 15 of /proc/PID/stat (proc(5)). `undefined` for a process that has ended. */
function readStat(pid: number): Stat | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // Field 2 is the name in brackets, which may hold anything: count from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[11]) + Number(fields[12])
  return { parentPid: Number(fields[1]), cpuUs: (ticks / ticksPerSecond) * 1_000_000 }
}
