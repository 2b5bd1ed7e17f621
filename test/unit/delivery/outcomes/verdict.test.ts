import { describe, expect, test } from 'vitest'
import type { Outcome } from '../../../../src/delivery/outcomes/outcome.ts'
import { judge, type Verdict } from '../../../../src/delivery/outcomes/verdict.ts'

const delivered: Verdict = { kind: 'delivered' }
const retry: Verdict = { kind: 'retry', afterMs: 0 }
const final: Verdict = { kind: 'final' }

const allStatuses = Array.from({ length: 900 }, (_, i) => i + 100)
const isRetriedClientError = (status: number) => [408, 423, 425, 429].includes(status)

function judgeStatus(status: number, retryAfterMs?: number): Verdict {
  return judge(
    retryAfterMs === undefined ? { kind: 'answer', status } : { kind: 'answer', status, retryAfterMs },
  )
}

describe('answers', () => {
  test('every 2xx is delivered', () => {
    const statuses = allStatuses.filter((status) => status >= 200 && status < 300)
    expect(statuses.map((status) => judgeStatus(status))).toEqual(statuses.map(() => delivered))
  })

  test('every 5xx, 408, 423, 425 and 429 is tried again', () => {
    const statuses = allStatuses.filter(
      (status) => (status >= 500 && status < 600) || isRetriedClientError(status),
    )
    expect(statuses.map((status) => judgeStatus(status))).toEqual(statuses.map(() => retry))
  })

  test('every 3xx and every other 4xx has failed for good', () => {
    const statuses = allStatuses.filter(
      (status) => status >= 300 && status < 500 && !isRetriedClientError(status),
    )
    expect(statuses.map((status) => judgeStatus(status))).toEqual(statuses.map(() => final))
  })

  test.each([429, 503])('%i is tried again not before its Retry-After', (status) => {
    expect(judgeStatus(status, 90_000)).toEqual({ kind: 'retry', afterMs: 90_000 })
  })

  test.each([408, 423, 425, 500, 502, 504])('a Retry-After on %i says nothing', (status) => {
    expect(judgeStatus(status, 90_000)).toEqual(retry)
  })

  test.each([
    [200, delivered],
    [301, final],
    [404, final],
  ])('a Retry-After on %i changes nothing', (status, verdict) => {
    expect(judgeStatus(status, 90_000)).toEqual(verdict)
  })
})

describe('no answer', () => {
  test.each<[Outcome, Verdict]>([
    [{ kind: 'timeout' }, retry],
    [{ kind: 'connection', code: 'ECONNREFUSED' }, retry],
    [{ kind: 'dns', code: 'ENOTFOUND' }, retry],
    [{ kind: 'certificate', code: 'CERT_HAS_EXPIRED' }, retry],
    [{ kind: 'certificate', code: 'ERR_TLS_CERT_ALTNAME_INVALID' }, retry],
    [{ kind: 'certificate', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }, final],
    [{ kind: 'address', address: '10.0.0.1' }, final],
    [{ kind: 'request', detail: 'invalid path' }, final],
  ])('%o', (outcome, verdict) => {
    expect(judge(outcome)).toEqual(verdict)
  })
})
