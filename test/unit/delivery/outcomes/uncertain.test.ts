import { describe, expect, test } from 'vitest'
import type { Outcome } from '../../../../src/delivery/outcomes/outcome.ts'
import { isUncertain } from '../../../../src/delivery/outcomes/verdict.ts'

const status = (code: number): Outcome => ({ kind: 'answer', status: code })

describe('a server may act late', () => {
  test.each<[Outcome, mayHaveArrived: boolean]>([
    [status(500), false],
    [status(502), false],
    [status(503), false],
    [status(504), false],
    [status(599), false],
    [{ kind: 'timeout' }, true],
    [{ kind: 'connection', code: 'ECONNRESET' }, true],
    [{ kind: 'connection', code: 'UND_ERR_SOCKET' }, true],
    [{ kind: 'connection', code: 'HTTPParserError' }, true],
    // A stale connection lost the first request. These outcomes are those of its repeat. They don't say what
    // became of the lost request.
    [status(429), true],
    [status(404), true],
    [status(200), true],
    [status(204), true],
    [{ kind: 'connection', code: 'ECONNREFUSED' }, true],
    [{ kind: 'dns', code: 'ENOTFOUND' }, true],
    [{ kind: 'certificate', code: 'CERT_HAS_EXPIRED' }, true],
    [{ kind: 'address', address: '10.0.0.1' }, true],
    [{ kind: 'proxy', code: 'ECONNREFUSED', isDown: true }, true],
  ])('after %o, written without an answer: %j', (outcome, mayHaveArrived) => {
    expect(isUncertain(outcome, mayHaveArrived)).toBe(true)
  })
})

describe('nothing comes late', () => {
  test.each<[Outcome, mayHaveArrived: boolean]>([
    [status(200), false],
    [status(204), false],
    [status(301), false],
    [status(400), false],
    [status(404), false],
    [status(408), false],
    [status(425), false],
    [status(429), false],
    [{ kind: 'timeout' }, false],
    [{ kind: 'connection', code: 'ECONNREFUSED' }, false],
    [{ kind: 'connection', code: 'ECONNRESET' }, false],
    [{ kind: 'dns', code: 'ENOTFOUND' }, false],
    [{ kind: 'certificate', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }, false],
    [{ kind: 'address', address: '10.0.0.1' }, false],
    [{ kind: 'request', detail: 'invalid path' }, false],
    [{ kind: 'proxy', code: 'CONNECT_503', isDown: false }, false],
  ])('after %o, written without an answer: %j', (outcome, mayHaveArrived) => {
    expect(isUncertain(outcome, mayHaveArrived)).toBe(false)
  })
})
