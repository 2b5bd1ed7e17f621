import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import type { Judgement } from '../../../src/message/judgement.ts'
import { stage, type StageOptions, taken, throttled } from './stage.ts'

/**
 * Returns a stage on which an Identify has waited on the first rung. Its record has come due, and `record` is
 * that record.
 */
export async function parked(
  judgement: Judgement,
  { outcome = throttled, options = {} }: { outcome?: Outcome; options?: StageOptions } = {},
) {
  const all = stage({ judge: async () => judgement, ...options })
  all.identify('v1')
  await all.answer(outcome)
  const record = all.retry(all.written[0])
  await all.settle()
  return { ...all, record }
}

/**
 * Returns a stage on which a stale connection lost a request, and the customer took the repeat. The delivery
 * then waited on the first rung, and has come due. `outcomes` are those of earlier attempts.
 */
export async function outlasting(judgement: Judgement, outcomes: readonly Outcome[] = []) {
  const all = stage({ judge: async () => judgement })
  all.identify('v1')
  for (const outcome of outcomes) {
    await all.answer(outcome)
    all.retry(all.written.at(-1))
    await all.settle()
  }
  all.posted[0]?.answer(taken, true)
  await all.settle()
  const letter = all.written.at(-1)
  const record = all.retry(letter)
  await all.settle()
  return { ...all, letter, record }
}
