import { describe, expect, test } from 'vitest'
import {
  outcomeOfRequest,
  readsStatuses,
  settledOf,
  settlementOf,
} from '../../../../src/delivery/batch/batch-answer.ts'
import type { Outcome } from '../../../../src/delivery/outcomes/outcome.ts'

function answered(status: number, body?: unknown, rest: { retryAfterMs?: number } = {}): Outcome {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { kind: 'answer', status, ...rest, ...(body !== undefined && { whole: Buffer.from(text) }) }
}

function told(outcome: Outcome): Outcome {
  return outcomeOfRequest(outcome, settlementOf(outcome, 3))
}

/** Returns the verdict on each of three messages, or the kind of settlement that holds for all. */
function verdictsOf(outcome: Outcome): string {
  const settlement = settlementOf(outcome, 3)
  const verdicts = [0, 1, 2].map((place) => settledOf(settlement, place).verdict.kind).join(' ')
  return settlement.kind === 'each' ? verdicts : `${settlement.kind}: ${verdicts}`
}

describe('the answer to a batch of three messages', () => {
  test.each([
    ['207 with an array of statuses', answered(207, [200, 500, 400]), 'delivered retry final'],
    [
      '207 with objects',
      answered(207, [{ status: 200 }, { status: 429 }, { status: 201 }]),
      'delivered retry delivered',
    ],
    ['207 with a named array', answered(207, { statuses: [200, 200, 404] }), 'delivered delivered final'],
    [
      '200 with a named array',
      answered(200, { ok: 2, statuses: [200, 503, 200] }),
      'delivered retry delivered',
    ],
    ['400 with a named array', answered(400, { statuses: [200, 422, 200] }), 'delivered final delivered'],
    ['200 with any other array', answered(200, [500, 500, 500]), 'all: delivered delivered delivered'],
    ['207 after a byte order mark', answered(207, '\ufeff[200, 500, 400]'), 'delivered retry final'],
    ['200 without a body', answered(200), 'all: delivered delivered delivered'],
    ['200 with too few statuses', answered(200, { statuses: [500] }), 'all: delivered delivered delivered'],
    ['207 without a body', answered(207), 'all: retry retry retry'],
    ['207 with too many statuses', answered(207, [200, 200, 200, 200]), 'all: retry retry retry'],
    ['207 with a body that breaks off', answered(207, '[200, 200, 2'), 'all: retry retry retry'],
    ['207 with no status of HTTP', answered(207, [200, 200, 99]), 'all: retry retry retry'],
    ['207 with a text', answered(207, [200, 200, '200']), 'all: retry retry retry'],
    ['400', answered(400), 'refused: final final final'],
    ['413', answered(413), 'refused: final final final'],
    ['422', answered(422), 'refused: final final final'],
    ['401, which is about the request', answered(401), 'all: final final final'],
    ['503', answered(503), 'all: retry retry retry'],
    ['no answer in time', { kind: 'timeout' } as const, 'all: retry retry retry'],
  ])('%s', (_, outcome, verdicts) => {
    expect(verdictsOf(outcome)).toBe(verdicts)
  })

  test('the wait that it asks for holds for each message that may be tried again', () => {
    const settlement = settlementOf(answered(207, [200, 429, 500], { retryAfterMs: 7_000 }), 3)
    expect([0, 1, 2].map((place) => settledOf(settlement, place).verdict)).toEqual([
      { kind: 'delivered' },
      { kind: 'retry', afterMs: 7_000 },
      { kind: 'retry', afterMs: 0 },
    ])
  })

  test('what the breaker learns is the status of all messages, if they have the same', () => {
    expect(told(answered(207, [503, 503, 503]))).toEqual({ kind: 'answer', status: 503 })
    expect(told(answered(207, [200, 503, 503]))).toEqual({ kind: 'answer', status: 207 })
    expect(told(answered(500))).toEqual({ kind: 'answer', status: 500 })
    expect(told({ kind: 'timeout' })).toEqual({ kind: 'timeout' })
  })
})

test('the body of an answer is read only where it may have statuses', () => {
  const { wants } = readsStatuses
  expect(wants(207, undefined)).toBe(true)
  expect(wants(200, 'application/json; charset=utf-8')).toBe(true)
  expect(wants(200, 'application/problem+json')).toBe(true)
  expect(wants(422, 'application/json')).toBe(true)
  expect(wants(200, 'text/html')).toBe(false)
  expect(wants(200, undefined)).toBe(false)
  expect(wants(500, 'application/json')).toBe(false)
})
