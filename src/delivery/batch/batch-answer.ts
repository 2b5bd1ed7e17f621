import { answerText } from '../../http/answer-text.ts'
import type { Outcome } from '../outcomes/outcome.ts'
import { judge, type Verdict } from '../outcomes/verdict.ts'

type Answer = Extract<Outcome, { kind: 'answer' }>

/** What came of one message of a batch, or of the whole batch. */
export type Settled = { readonly outcome: Outcome; readonly verdict: Verdict }

/**
 * What an answer means for the messages of a batch. `all`: the same for each of them. `each`: what it says of
 * each, in their order. `refused`: at least one message isn't accepted, and the answer doesn't say which.
 */
export type Settlement =
  | ({ readonly kind: 'all' } & Settled)
  | { readonly kind: 'each'; readonly each: readonly Settled[] }
  | ({ readonly kind: 'refused' } & Settled)

/** Limit on the bytes of an answer's body that are read for the statuses of the messages. */
const maxStatusesBytes = 64 * 1024

/** Bad request, content too large, unprocessable content: the fault may be that of one message. */
const refusals: ReadonlySet<number> = new Set([400, 413, 422])
const multiStatus = 207
const jsonType = /^application\/(?:[\w.-]+\+)?json\b/i

/** Returns true if the body of an answer may have the statuses of the messages, so that it has to be read. */
function mayHaveStatuses(status: number, contentType: string | undefined): boolean {
  if (status === multiStatus) return true
  const isRead = (status >= 200 && status < 300) || refusals.has(status)
  return isRead && contentType !== undefined && jsonType.test(contentType)
}

/** What an exchange with a batch reads of its answer. */
export const readsStatuses = { maxBytes: maxStatusesBytes, wants: mayHaveStatuses }

/**
 * Judges the outcome of a request with so many messages. The statuses of the messages are in the body as
 * `{"statuses": [200, 400, …]}`, or after a 207 also as the array alone. A status may be in an object with
 * the field `status`. If the array hasn't as many statuses as messages, it doesn't count. A 207 without
 * statuses says that something wasn't accepted, and not what, so the messages are tried again.
 */
export function settlementOf(outcome: Outcome, messages: number): Settlement {
  if (outcome.kind !== 'answer') return { kind: 'all', outcome, verdict: judge(outcome) }
  const { whole, ...answer } = outcome
  const statuses = whole === undefined ? undefined : statusesIn(whole, answer.status)
  if (statuses?.length === messages) {
    return { kind: 'each', each: statuses.map((status) => settledBy(status, answer)) }
  }
  if (answer.status === multiStatus) {
    return { kind: 'all', outcome: answer, verdict: { kind: 'retry', afterMs: 0 } }
  }
  const verdict = judge(answer)
  return { kind: refusals.has(answer.status) ? 'refused' : 'all', outcome: answer, verdict }
}

/** Returns what a settlement means for the message at a place of the batch. */
export function settledOf(settlement: Settlement, place: number): Settled {
  if (settlement.kind !== 'each') return settlement
  const settled = settlement.each[place]
  if (settled === undefined) throw new Error('a batch was settled that has more messages than its answer')
  return settled
}

/**
 * Returns the outcome of a request, as far as it tells something about the hook. If all messages have the
 * same status, the request counts as if it had this status: a server that answers 207 may have no room for
 * any.
 */
export function outcomeOfRequest(outcome: Outcome, settlement: Settlement): Outcome {
  if (settlement.kind !== 'each') return settlement.outcome
  const [first, ...others] = settlement.each.map((one) => one.outcome)
  if (first === undefined || first.kind !== 'answer') return outcome
  const isSame = others.every((other) => other.kind === 'answer' && other.status === first.status)
  if (isSame) return first
  return { kind: 'answer', status: multiStatus }
}

/** Returns the outcome of a request with so many messages, as far as it tells something about the hook. */
export function wholeOutcomeOf(outcome: Outcome, messages: number): Outcome {
  return outcomeOfRequest(outcome, settlementOf(outcome, messages))
}

function settledBy(status: number, { retryAfterMs }: Answer): Settled {
  const outcome: Answer = { kind: 'answer', status, ...(retryAfterMs !== undefined && { retryAfterMs }) }
  return { outcome, verdict: judge(outcome) }
}

/** Returns the statuses in the body of an answer, or `undefined` if there are none. */
function statusesIn(body: Uint8Array, status: number): readonly number[] | undefined {
  const read = parsed(body)
  const list = Array.isArray(read) && status === multiStatus ? read : fieldOf(read, 'statuses')
  if (!Array.isArray(list)) return undefined
  const statuses = list.map((item: unknown) => (isStatus(item) ? item : fieldOf(item, 'status')))
  return statuses.every(isStatus) ? statuses : undefined
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(answerText(body))
  } catch {
    return undefined
  }
}

function fieldOf(value: unknown, name: 'status' | 'statuses'): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
}

/** A final status of HTTP. A status below 200 says nothing about a message. */
function isStatus(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 200 && value <= 599
}
