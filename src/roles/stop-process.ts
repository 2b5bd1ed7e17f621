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
  one.terminate()
  // A process that has started keeps to the shutdown timeout, but exports its last spans afterwards.
  const orderlyMs = one.isStarting ? unwindMs : shutdownTimeoutMs + flushMs
  const timer = setTimeout(() => {
    onOverdue(one)
    one.kill()
  }, orderlyMs + overdueMs)
  await one.ended
  clearTimeout(timer)
}
