import type { Logger } from 'pino'
import type { OmitReason } from '../pipeline/attempt.ts'

/** How often one hook is spoken of, in milliseconds. */
const everyMs = 10_000
/** Hooks that are remembered; past it, all are forgotten, and spoken of anew. */
const maxHooks = 10_000

type Omission = { destination: string; hook: string; why: OmitReason; messageId: string }

/** Says which hooks got no request of messages that another hook took: a line a hook and reason in ten seconds, with how many it stands for. */
export function createOmissionLog(log: Logger): { tell(omission: Omission): void } {
  const told = new Map<string, { sinceMs: number; unsaid: number }>()
  return {
    tell({ destination, hook, why, messageId }) {
      const key = `${why} ${hook} ${destination}`
      const nowMs = performance.now()
      const before = told.get(key)
      if (before !== undefined && nowMs - before.sinceMs < everyMs) {
        before.unsaid++
        return
      }
      if (told.size >= maxHooks) told.clear()
      told.set(key, { sinceMs: nowMs, unsaid: 0 })
      log.warn(
        { destination, hook, reason: why, messageId, notSaidBefore: before?.unsaid ?? 0 },
        'another URL of the destination took the message, and this one never gets it: it fails or asked for a pause, and had no turn in time',
      )
    },
  }
}
