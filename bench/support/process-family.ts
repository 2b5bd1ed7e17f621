import { readdirSync, readFileSync } from 'node:fs'
import { BenchmarkFailure } from './failure.ts'

/** `USER_HZ`, the unit of times in /proc. It is 100 on every Linux that Node runs on. */
const ticksPerSecond = 100

type Member = { id: number; parentId: number; cpuUs: number }

/**
 * Returns the user and system time that all threads of a process and its descendants have used so far, in
 * microseconds. The resolution is 10 ms a process. Descendants that have ended are left out. The times are
 * from /proc, which only Linux has.
 */
export function cpuUsOf(pid: number): number {
  return familyOf(pid).reduce((sum, { cpuUs }) => sum + cpuUs, 0)
}

/** Sends a signal to a process, and then to its descendants. */
export function signalFamily(pid: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
  for (const { id } of familyOf(pid)) process.kill(id, signal)
}

/** Returns a process and all its descendants. */
function familyOf(pid: number): Member[] {
  const head = readMember(pid)
  if (head === undefined) throw new BenchmarkFailure(`process ${pid} isn't in /proc: benchmarks need Linux`)
  const all = readdirSync('/proc').flatMap((name) => {
    const id = Number(name)
    const member = Number.isInteger(id) ? readMember(id) : undefined
    return member === undefined ? [] : [member]
  })
  const below = (parent: number): Member[] =>
    all.flatMap((member) => (member.parentId === parent ? [member, ...below(member.id)] : []))
  return [head, ...below(pid)]
}

/**
 * Reads the fields 4, 14 and 15 of /proc/PID/stat (proc(5)). Returns `undefined` for a process that has
 * ended.
 */
function readMember(id: number): Member | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${id}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // Field 2 is the name in brackets, which may contain any character. So the fields are counted after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[11]) + Number(fields[12])
  return { id, parentId: Number(fields[1]), cpuUs: (ticks / ticksPerSecond) * 1_000_000 }
}
