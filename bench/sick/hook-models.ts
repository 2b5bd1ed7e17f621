import type { Outcome } from '../../src/delivery/outcome.ts'

/** One request to a hook, as its model is told of it. */
export type Asked = {
  /** The message's number at its destination, from 0. */
  message: number
  /** How many requests of this message the hook has had before. */
  before: number
  /** Epoch milliseconds. */
  nowMs: number
}

export type Answer = { outcome: Outcome; afterMs: number }

/**
 * What a hook answers, and when. It depends on nothing but what it is told: two that try a message equally often, however far
 * apart, get the same answers, so that what is compared differs by its number of tries and not by luck.
 */
export type HookModel = { readonly name: string; answer(asked: Asked): Answer }

const ok: Outcome = { kind: 'answer', status: 200 }
const serverError: Outcome = { kind: 'answer', status: 500 }
const timeout: Outcome = { kind: 'timeout' }

/** Answers 500 to so large a share (0 to 1) of its requests, each on its own, and 200 to the others, after 20 to 50 ms. */
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

/** Never answers: the deadline of `timeoutMs` ends each request. */
export function silent(timeoutMs: number): HookModel {
  return { name: 'never answers', answer: () => ({ outcome: timeout, afterMs: timeoutMs }) }
}

/** Always answers the same, after 20 to 50 ms. */
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

/** 0 to 1, as if it were random, and the same each time (the finisher of MurmurHash3). */
function chance(message: number, before: number, salt: number): number {
  let bits =
    Math.imul(message + 1, 0x9e3779b1) ^ Math.imul(before + 1, 0x85ebca6b) ^ Math.imul(salt, 0xc2b2ae35)
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32
}
