import type { GroupConsumer } from '../kafka/consumer.ts'

/**
 * Returns true if the group has heard from this member within a session timeout. Then no other member owns
 * its units. `consumer` is `undefined` while the member starts.
 */
export function isStillMember(
  consumer: Pick<GroupConsumer, 'lastCommitMs'> | undefined,
  sessionTimeoutMs: number,
): boolean {
  const agoMs = Date.now() - (consumer?.lastCommitMs ?? 0)
  // If the clock was set back, this is negative until the next commit, and the true time isn't known.
  return agoMs >= 0 && agoMs < sessionTimeoutMs
}
