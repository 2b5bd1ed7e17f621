import process from 'node:process'
import type { MetricsSnapshot } from '../../telemetry/add-up.ts'
import { StartError } from '../start/start-error.ts'

// The messages between the processes of a worker. Both ends run the same version of this program.

/** A question of the primary to a process. The process sends its answer with the same `id`. */
export type Question = { id: number; ask: keyof Answers }

export type Answers = {
  metrics: MetricsSnapshot
  /** The reasons why the process can't do its work, in words. */
  notReady: readonly string[]
}

/**
 * The reason why a process can't continue. `isStartError` is true if the cause is outside of the process, and
 * the message says what to do.
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

/**
 * Sends the primary the reason why this process ends. Returns false if the primary doesn't get the reason,
 * for example because the primary has ended.
 */
export async function sendFailure(error: unknown): Promise<boolean> {
  const { message, stack = '' } = error instanceof Error ? error : new Error(String(error))
  const failure = { message, stack, isStartError: error instanceof StartError }
  return tell({ tell: 'failed', failure })
}

/**
 * How long sending a report may take, in milliseconds. A primary that hangs must not keep this process from
 * ending.
 */
const tellWithinMs = 500

/** Sends a report to the primary. Resolves with false if that fails. Never rejects. */
export function tell(report: Report): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  if (process.send === undefined) resolve(false)
  else {
    const timer = setTimeout(resolve, tellWithinMs, false)
    process.send(report, undefined, undefined, (error) => {
      clearTimeout(timer)
      resolve(error === null)
    })
  }
  return promise
}
