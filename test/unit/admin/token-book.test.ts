import { expect, test } from 'vitest'
import { TokenBook } from '../../../src/admin/token-book.ts'
import {
  createToken,
  type KeptToken,
  newSecret,
  readStoredToken,
  readTokens,
  storedToken,
} from '../../../src/admin/tokens.ts'

const label = { key: 'tenant', value: 'acme' }

function kept(given: Partial<KeptToken> = {}): { token: string; kept: KeptToken } {
  const { token, digest } = newSecret()
  const made = { madeBy: 'ann', madeAtMs: 1_000, family: 'acme', endsAtMs: 2_000 }
  return {
    token,
    kept: { name: 'acme', right: 'read', seesContent: false, digest, scope: { label }, ...made, ...given },
  }
}

test('a token of the topic is in force until its end, or until it is revoked', () => {
  const { token, kept: one } = kept()
  let nowMs = 1_500
  let stored = new Map<string, Readonly<Record<string, unknown>>>([[one.name, storedToken(one)]])
  const book = new TokenBook({ ofFile: () => [], ofTopic: () => stored, now: () => nowMs })
  expect(book.find(token)).toMatchObject({ name: 'acme', right: 'read', scope: { label } })
  expect(book.find(`${token}x`)).toBeUndefined()
  expect(book.lastUsedMs(one)).toBe(1_500)
  nowMs = 2_000
  expect(book.find(token)).toBeUndefined()
  expect(book.ofTopic).toHaveLength(1)
  nowMs = 1_999
  expect(book.find(token)).toBeDefined()
  stored = new Map()
  expect(book.find(token)).toBeUndefined()
  // What is gone takes no memory.
  expect(book.lastUsedMs(one)).toBeUndefined()
})

test('tokens of the file are for everything, without an end, beside those of the topic', () => {
  const { token, line } = createToken('root', 'admin')
  const read = readTokens(line)
  if (!read.ok) throw new Error(read.problem)
  const { kept: other } = kept()
  const stored = new Map([[other.name, storedToken(other)]])
  const book = new TokenBook({ ofFile: () => read.tokens, ofTopic: () => stored })
  expect(book.find(token)).toMatchObject({ name: 'root', scope: {}, endsAtMs: undefined })
})

test('a token is read as it was stored, without the token itself', () => {
  for (const given of [
    {},
    { endsAtMs: undefined, scope: {} },
    { scope: { destinations: new Set(['crm']) } },
  ]) {
    const { token, kept: one } = kept(given)
    const stored = storedToken(one)
    expect(JSON.stringify(stored)).not.toContain(token.slice(7))
    expect(readStoredToken(JSON.parse(JSON.stringify(stored)))).toEqual(one)
  }
})

test.each([
  { mayOnly: 'something that a later version knows' },
  { scope: { label: 'tenant=acme', network: '10.0.0.0/8' } },
  { scope: undefined },
  { right: 'everything' },
  { endsAt: 'soon' },
  { endsAt: 5 },
  { sha256: '' },
  { id: undefined },
])('a stored token with %o is not in force', (other) => {
  expect(readStoredToken({ ...storedToken(kept().kept), ...other })).toBeUndefined()
})
