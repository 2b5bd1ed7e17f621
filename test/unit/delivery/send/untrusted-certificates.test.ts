import { Socket } from 'node:net'
import type { buildConnector } from 'undici'
import { afterEach, expect, test, vi } from 'vitest'
import { rememberingDistrust } from '../../../../src/delivery/send/untrusted-certificates.ts'

/** Tests of the requests that wait while one connection finds out whether a certificate is trusted again. */

const expired = Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' })
const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
const to = { hostname: 'crm.example', protocol: 'https:', port: '443' } as buildConnector.Options

afterEach(() => void vi.useRealTimers())

/**
 * Makes ten connections, which all find an expired certificate. Makes one more connection a second later,
 * which has no result yet.
 */
function suspicious() {
  vi.useFakeTimers({ toFake: ['performance'] })
  const dialled: buildConnector.Callback[] = []
  const connect = rememberingDistrust((_, callback) => void dialled.push(callback))
  const results: string[] = []
  const ask = (name: string) =>
    connect(to, (...[error]) => void results.push(`${name}: ${error === null ? 'open' : error.message}`))
  for (let i = 0; i < 10; i++) {
    connect(to, () => undefined)
    dialled.pop()?.(expired, null)
  }
  vi.advanceTimersByTime(1_001)
  ask('probe')
  return { dialled, results, ask }
}

test('while one connection is tried, others wait for it, and open if the certificate is trusted', () => {
  const { dialled, results, ask } = suspicious()
  ask('waits')
  expect({ dialled: dialled.length, results }).toEqual({ dialled: 1, results: [] })
  dialled[0]?.(null, new Socket())
  dialled[1]?.(null, new Socket())
  expect(results).toEqual(['probe: open', 'waits: open'])
})

test.each([expired, refused])(
  'with $code, those that wait fail alike, and no connection is made for them',
  (error) => {
    const { dialled, results, ask } = suspicious()
    ask('waits')
    dialled[0]?.(error, null)
    expect(results).toEqual([`probe: ${error.message}`, `waits: ${error.message}`])
    expect(dialled.length).toBe(1)
  },
)

test('after a refused connection, the next request tries again at once', () => {
  const { dialled, results, ask } = suspicious()
  dialled[0]?.(refused, null)
  ask('next')
  dialled[1]?.(null, new Socket())
  expect(results).toEqual(['probe: connect ECONNREFUSED', 'next: open'])
})

test('what has waited for a second connects too when the certificate is trusted', () => {
  const { dialled, results, ask } = suspicious()
  ask('waits')
  vi.advanceTimersByTime(1_001)
  ask('came later')
  dialled[0]?.(null, new Socket())
  expect(results).toEqual(['probe: open'])
  for (const answer of dialled.slice(1)) answer(null, new Socket())
  expect(results.slice(1)).toEqual(['waits: open', 'came later: open'])
})
