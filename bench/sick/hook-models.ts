import type { Outcome } from '../../src/delivery/outcomes/outcome.ts'

/** One request to a hook, as the model of the hook sees it. */
export type Asked = {
  /** The number of the message at its destination, from 0. */
  message: number
  /** The number of earlier requests of this message to the hook. */
  before: number
  /** The time of the request, in epoch milliseconds. */
  nowMs: number
}

export type Answer = { outcome: Outcome; afterMs: number }

/**
 * A model of a hook, which decides the answer to each request and its time. The answer depends only on the
 * request. So two senders that try a message equally often get the same answers, whatever the times of their
 * tries. A comparison of two senders then shows their numbers of tries and not chance.
 */
export type HookModel = { readonly name: string; answer(asked: Asked): Answer }

const ok: Outcome = { kind: 'answer', status: 200 }
const serverError: Outcome = { kind: 'answer', status: 500 }
const timeout: Outcome = { kind: 'timeout' }

/**
 * Returns a hook that answers 500 to a share (0 to 1) of its requests, and 200 to the others, after 20 to 50
 * ms. Each request is decided independently.
 */
export function failing(share: number): HookModel {
  return {
    name: share === 0 ? 'healthy' : `fails ${Math.round(share * 100)} %`,
    answer: ({ message, before }) => ({
      outcome: chance(message, before, 1) < share ? serverError : ok,
      afterMs: answerMs(message, before),
    }),
  }
}

export const healthy: HookModel = failing(0)

/** Returns a hook that never answers. The deadline of `timeoutMs` ends each request. */
export function silent(timeoutMs: number): HookModel {
  return { name: 'never answers', answer: () => ({ outcome: timeout, afterMs: timeoutMs }) }
}

/** Returns a hook that always gives the same answer, after 20 to 50 ms. */
export function answering(status: number, retryAfterMs?: number): HookModel {
  const outcome: Outcome = { kind: 'answer', status, ...(retryAfterMs !== undefined && { retryAfterMs }) }
  return {
    name: `answers ${status}`,
    answer: ({ message, before }) => ({ outcome, afterMs: answerMs(message, before) }),
  }
}

function answerMs(message: number, before: number): number {
  return 20 + Math.floor(chance(message, before, 2) * 31)
}

/**
 * Returns a number from 0 to 1 that looks random, and is always the same for the same arguments
 * (MurmurHash3's finisher).
 */
function chance(message: number, before: number, salt: number): number {
  let bits =
    Math.imul(message + 1, 0x9e3779b1) ^ Math.imul(before + 1, 0x85ebca6b) ^ Math.imul(salt, 0xc2b2ae35)
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32
}
