import { expect, test } from 'vitest'
import { readTokenAnswer } from '../../../src/http/client-credentials.ts'

const askedMs = 1_000_000_000_000
const minute = 60_000

/** Returns the lifetime of the token in an answer, in milliseconds. */
function lifeOf(answer: object): number {
  const read = readTokenAnswer(200, JSON.stringify({ access_token: 'opaque', ...answer }), askedMs)
  return read.ok ? read.token.endsMs - askedMs : Number.NaN
}

/** Returns a JSON Web Token that ends at this time, in epoch seconds. */
function jwt(exp: unknown): string {
  return `e30.${Buffer.from(JSON.stringify({ exp })).toString('base64url')}.x`
}

test.each([
  [60, minute],
  ['60', minute],
  [0, 5 * minute],
  [-1, 5 * minute],
  ['soon', 5 * minute],
  [null, 5 * minute],
  [{}, 5 * minute],
])('expires_in %j', (expiresIn, ms) => {
  expect(lifeOf({ expires_in: expiresIn })).toBe(ms)
})

test('a lifetime without end is no fault', () => {
  expect(lifeOf({ expires_in: 1e99 })).toBeGreaterThan(minute)
})

test('a JSON Web Token names its end, unless the clocks differ by more than its lifetime', () => {
  expect(lifeOf({ access_token: jwt(askedMs / 1_000 + 120) })).toBe(2 * minute)
  expect(lifeOf({ access_token: jwt(askedMs / 1_000 - 3_600) })).toBe(5 * minute)
  expect(lifeOf({ access_token: jwt('later') })).toBe(5 * minute)
})

test.each([201, 203])('a token with the status %i is a token', (status) => {
  expect(readTokenAnswer(status, '{"access_token":"t"}', askedMs)).toMatchObject({ ok: true })
})

test.each([
  [302, '{"access_token":"t"}', 'status'],
  [200, '<html>', 'body'],
  [200, '{"access_token":"cut', 'body'],
  [200, '', 'body'],
  [200, '{"access_token":"a\\r\\nX-Evil: 1"}', 'unusable'],
  [200, '{"access_token":"a\\n"}', 'unusable'],
  [200, '{"access_token":""}', 'absent'],
  [200, '{"access_token":7}', 'absent'],
  [200, 'null', 'absent'],
])('status %i with %s is none', (status, text, fault) => {
  expect(readTokenAnswer(status, text, askedMs)).toMatchObject({ ok: false, fault })
})
