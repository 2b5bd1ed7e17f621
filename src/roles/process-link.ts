import type { MetricsSnapshot } from '../telemetry/add-up.ts'

/** What the processes of a worker say to each other. Both ends are this program, of one version. */

/** The primary asks; the process answers with the same `id`. */
export type Question = { id: number; ask: keyof Answers }

export type Answers = {
  metrics: MetricsSnapshot
  /** What keeps the process from doing its work, in words. */
  notReady: readonly string[]
}

/**
 * Why a process can't go on. `isStartError`: something around it is in the way, the message says what to do.
 */
export type Failure = { message: string; stack: string; isStartError: boolean }

export type Report =
  | { tell: 'started' }
  | { tell: 'failed'; failure: Failure }
  | { tell: 'answer'; id: number; answer: Answers[keyof Answers] }
  | { tell: 'no answer'; id: number; reason: string }

/** Other messages on the channel are left alone. */
export function isQuestion(message: unknown): message is Question {
  return typeof message === 'object' && message !== null && 'ask' in message
}

export function isReport(message: unknown): message is Report {
  return typeof message === 'object' && message !== null && 'tell' in message
}
