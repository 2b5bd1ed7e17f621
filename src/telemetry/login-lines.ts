import type { Logger } from 'pino'
import type { PipelineObserver } from '../pipeline/pipeline-ports.ts'
import type { WorkerMetrics } from './worker-metrics.ts'

/**
 * Counts requests for tokens, and logs when a hook's login begins to fail, fails for another reason, and
 * works again.
 */
export function loginObserver(
  { tokenRequests }: Pick<WorkerMetrics, 'tokenRequests'>,
  log: Pick<Logger, 'info' | 'warn'>,
): NonNullable<PipelineObserver['askedForToken']> {
  // Shared series are created with 0, so that the first failure is visible as an increase.
  const failed = tokenRequests.series({ outcome: 'failed' })
  const given = tokenRequests.series({ outcome: 'given' })
  /** The last problem of each hook whose login fails. */
  const failing = new Map<string, string>()
  return (destination, hook, { problem, isKept }, definition) => {
    ;(problem === undefined ? given : failed).inc()
    const key = JSON.stringify([destination, hook])
    const before = failing.get(key)
    if (problem === undefined || definition === undefined) {
      failing.delete(key)
      if (before !== undefined && problem === undefined)
        log.info({ destination, hook }, 'the login works again: what waited is sent')
      return
    }
    const now = `${String(isKept)} ${problem}`
    if (now === before) return
    failing.set(key, now)
    const line = { destination, hook, problem }
    if (isKept) log.warn(line, 'the token endpoint gives no new token: the present one is used until it ends')
    else
      log.warn(line, 'the login failed: messages wait in their queue until the token endpoint gives a token')
  }
}
