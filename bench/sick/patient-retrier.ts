import { judge } from '../../src/delivery/outcomes/verdict.ts'
import { type Ladder, nextStep } from '../../src/retry/ladder.ts'
import type { HookModel } from './hook-models.ts'

/** The fate of a message, and the number of its requests. */
export type Fate = { isTaken: boolean; requests: number }

/**
 * Returns the fate of a message with the patient retrier, which has no breaker and no limits, and makes each
 * try of the ladder on time. It delivers every message that the hook would accept, and so is the yardstick.
 */
export function tryPatiently(
  model: HookModel,
  message: number,
  { ladder, firstMs }: { ladder: Ladder; firstMs: number },
): Fate {
  const expiresAtMs = firstMs + ladder.limitMs
  let nowMs = firstMs
  let rung = 0
  for (let requests = 1; ; requests++) {
    const { outcome, afterMs } = model.answer({ message, before: requests - 1, nowMs })
    const verdict = judge(outcome)
    if (verdict.kind !== 'retry') return { isTaken: verdict.kind === 'delivered', requests }
    nowMs += afterMs
    const notBeforeMs = verdict.afterMs > 0 ? nowMs + verdict.afterMs : 0
    const step = nextStep(ladder, { rung, nowMs, expiresAtMs, notBeforeMs })
    if (step.kind === 'expired') return { isTaken: false, requests }
    nowMs += step.waitMs
    rung = step.rung + 1
  }
}
