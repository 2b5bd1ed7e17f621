import { unwindMs } from './parts.ts'
import { flushMs } from './tracing.ts'
import type { WorkerProcess } from './worker-process.ts'

export type StoppedProcess = Pick<WorkerProcess, 'number' | 'isStarting' | 'ended' | 'terminate' | 'kill'>

/** How long a process may exceed its time to stop before it counts as hung, in milliseconds. */
const overdueMs = 1_000

/**
 * Stops a process, and resolves when the process has ended. A process that hangs is killed, after a call of
 * `onOverdue`. A process that has not started yet stops sooner than a process that delivers, so it counts as
 * hung sooner.
 */
export async function stopInTime(
  one: StoppedProcess,
  shutdownTimeoutMs: number,
  onOverdue: (one: StoppedProcess) => void,
): Promise<void> {
  function look(): void {
    // The report that the process has started may have been on its way at the first look.
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
