import { describe, expect, test } from 'vitest'
import { counted, duration, fromNow, millis, percent } from '../../../src/console/data/format.ts'
import { explainReason } from '../../../src/message/dead-letter-explained.ts'
import { clients, snippetOf } from '../../../src/console/data/snippets.ts'

describe('figures of the console', () => {
  test('a share that is not whole is never written as 0 % or 100 %', () => {
    expect([0, 1, 0.99995, 0.9995, 0.5, undefined].map(percent)).toEqual([
      '0 %',
      '100 %',
      '99.99 %',
      '99.95 %',
      '50.0 %',
      '—',
    ])
    expect([0.0001, 0.000001].map(percent)).toEqual(['0.01 %', '0.01 %'])
  })

  test('a duration has its two largest units', () => {
    expect([0, 59, 61, 3_600, 5_400, 200_000].map(duration)).toEqual([
      '0 s',
      '59 s',
      '1 min',
      '1 h',
      '1 h 30 min',
      '2 d 7 h',
    ])
  })

  test('one of something is no plural', () => {
    expect([0, 1, 12_345].map((value) => counted(value, 'message'))).toEqual([
      '0 messages',
      '1 message',
      '12,345 messages',
    ])
  })

  test('a time says how far it is', () => {
    const now = Date.parse('2026-07-29T09:30:00Z')
    expect(fromNow('2026-07-29T09:26:00Z', now)).toBe('4 min ago')
    expect(fromNow('2026-07-29T09:30:40Z', now)).toBe('in 40 s')
  })

  test('a latency has as many digits as are known', () => {
    expect([0, 3.14, 31.2, 880, 1_250, null].map(millis)).toEqual([
      '0 ms',
      '3.1 ms',
      '31 ms',
      '880 ms',
      '1.25 s',
      '—',
    ])
  })
})

test('a reason that this console does not know is named, and not left out', () => {
  expect(explainReason('not_yet_invented').means).toContain('not_yet_invented')
  expect(explainReason('constructor').means).toContain('constructor')
})

test('a key or a URL can not break out of the text to paste', () => {
  const place = { url: "http://x/'; rm -rf ~; '", key: '"`$(reboot)' }
  expect(snippetOf('curl', place)).toContain(`'http://x/'\\''; rm -rf ~; '\\''/v1/track'`)
  for (const { value } of clients.slice(1))
    expect(snippetOf(value, place)).toContain(JSON.stringify(place.key))
})
