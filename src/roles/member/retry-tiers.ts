import type { Logger } from 'pino'
import { existingRetryTiers } from '../../topics/topics.ts'
import { formatWait, parseWait } from '../../retry/duration.ts'
import { type Ladder, tiersOf } from '../../retry/ladder.ts'

/** A retry topic, and how long its records wait. */
export type RetryTier = { readonly topic: string; readonly waitMs: number }

/**
 * Lists the tiers of the ladder, and the existing tiers of earlier ladders, in which records may still wait.
 */
export async function tiersToConsume(
  kafka: Parameters<typeof existingRetryTiers>[0],
  ladder: Ladder,
  retryPrefix: string,
  log: Pick<Logger, 'warn'>,
): Promise<readonly RetryTier[]> {
  const names = new Set([
    ...tiersOf(ladder).map(formatWait),
    ...(await existingRetryTiers(kafka, retryPrefix)),
  ])
  return [...names].flatMap((name) => {
    const waitMs = parseWait(name)
    if (waitMs !== undefined) return [{ topic: `${retryPrefix}${name}`, waitMs }]
    log.warn({ topic: `${retryPrefix}${name}` }, 'a retry topic has no wait in its name, and is not read')
    return []
  })
}
