import type { MetricsSnapshot } from '../telemetry/add-up.ts'

/** The messages between the processes of a worker. Both ends run the same version of this program. */

/** A question of the primary. The process answers with the same `id`. */
export type Question = { id: number; ask: keyof Answers }

export type Answers = {
  metrics: MetricsSnapshot
  /** The reasons why the process can't do its work, in words. */
  notReady: readonly string[]
}

/**
 * The reason why a process can't go on. `isStartError`: the cause is outside of the process, and the message
 * says what to do.
 */
export type Failure = { message: string; stack: string; isStartError: boolean }

export type Report =
  | { tell: 'started' }
  | { tell: 'failed'; failure: Failure }
  | { tell: 'answer'; id: number; answer: Answers[keyof Answers] }
  | { tell: 'no answer'; id: number; reason: string }

/** Returns true if a message is a question. Other messages on the channel are ignored. */
export function isQuestion(message: unknown): message is Question {
  return typeof message === 'object' && message !== null && 'ask' in message
}

export function isReport(message: unknown): message is Report {
  return typeof message === 'object' && message !== null && 'tell' in message
}
