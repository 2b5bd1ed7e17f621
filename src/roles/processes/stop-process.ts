import { unwindMs } from '../start/parts.ts'
import { flushMs } from '../start/tracing.ts'
import type { WorkerProcess } from './worker-process.ts'

export type StoppedProcess = Pick<WorkerProcess, 'number' | 'isStarting' | 'ended' | 'terminate' | 'kill'>

/** How long a process may exceed its time to stop before it counts as hung, in milliseconds. */
const overdueMs = 1_000

/**
 * Stops a process, and resolves when the process has ended. If the process hangs, calls `onOverdue` and kills
 * the process. A process that has not started yet gets less time than a process that delivers, because it has
 * less to finish.
 */
export async function stopInTime(
  one: StoppedProcess,
  shutdownTimeoutMs: number,
  onOverdue: (one: StoppedProcess) => void,
): Promise<void> {
  function look(): void {
    // The time to stop may have become longer since the wait began: the process may have reported meanwhile
    // that it has started.
    const leftMs = orderlyMs() - waitedMs
    if (leftMs > 0) wait(leftMs)
    else {
      onOverdue(one)
      one.kill()
    }
  }
  function wait(ms: number): void {
    waitedMs += ms
    timer = setTimeout(look, ms)
  }
  // A process that has started keeps to the shutdown timeout, but exports its last spans afterwards.
  const orderlyMs = (): number => overdueMs + (one.isStarting ? unwindMs : shutdownTimeoutMs + flushMs)
  let waitedMs = 0
  let timer: NodeJS.Timeout | undefined
  one.terminate()
  wait(orderlyMs())
  await one.ended
  clearTimeout(timer)
}
