import { expect, test } from 'vitest'
import type { Token } from '../../../../src/http/client-credentials.ts'
import { TokenRefusedError } from '../../../../src/kafka/login/token-endpoint.ts'
import { Tokens } from '../../../../src/kafka/login/token-renewal.ts'

/** Returns tokens that are valid for `lifeMs` milliseconds, on a clock that the test sets. */
function setUp(lifeMs: number) {
  const state = { nowMs: 1_000_000, asked: 0, failure: undefined as Error | undefined, kept: [] as string[] }
  const tokens = new Tokens({
    async ask(): Promise<Token> {
      state.asked++
      if (state.failure !== undefined) throw state.failure
      return { value: `token-${state.asked}`, endsMs: state.nowMs + lifeMs }
    },
    onKept: (reason) => state.kept.push(reason),
    now: () => state.nowMs,
  })
  return { state, tokens }
}

const minute = 60_000

test('a token is asked for once, by however many connections want it', async () => {
  const { state, tokens } = setUp(5 * minute)
  expect(await Promise.all([tokens.current(), tokens.current()])).toEqual(['token-1', 'token-1'])
  state.nowMs += 3.9 * minute
  expect(await tokens.current()).toBe('token-1')
  expect(state.asked).toBe(1)
})

test('a token is renewed before its end', async () => {
  const { state, tokens } = setUp(5 * minute)
  await tokens.current()
  state.nowMs += 4.1 * minute
  expect(await tokens.current()).toBe('token-2')
})

test('a short token is renewed in time for a connection to live on for longer than its broker waits between logins', async () => {
  const { state, tokens } = setUp(20_000)
  await tokens.current()
  state.nowMs += 5_100
  expect(await tokens.current()).toBe('token-2')
})

test('while no new one can be had the old one stays in use until it ends', async () => {
  const { state, tokens } = setUp(5 * minute)
  await tokens.current()
  state.failure = new Error('the endpoint is away')
  state.nowMs += 4.5 * minute
  expect(await tokens.current()).toBe('token-1')
  expect(state.kept).toEqual(['the endpoint is away'])
  state.nowMs += 0.5 * minute
  await expect(tokens.current()).rejects.toThrow('the endpoint is away')
  state.failure = undefined
  expect(await tokens.current()).toMatch(/^token-/)
})

test('an endpoint that asks for a wait is not asked before, however many connections log in', async () => {
  const { state, tokens } = setUp(5 * minute)
  state.failure = new TokenRefusedError('429: too many', 30_000)
  for (let at = 0; at < 10; at++) await expect(tokens.current()).rejects.toThrow('too many')
  expect(state.asked).toBe(1)
  state.nowMs += 30_000
  state.failure = undefined
  expect(await tokens.current()).toBe('token-2')
  // Of an old token that is still valid, too.
  state.nowMs += 4.5 * minute
  state.failure = new TokenRefusedError('429: too many', 10_000)
  for (let at = 0; at < 10; at++) expect(await tokens.current()).toBe('token-2')
  expect(state.asked).toBe(3)
})

test('no endpoint keeps Kafka away for longer than five minutes by what it asks for', async () => {
  const { state, tokens } = setUp(5 * minute)
  state.failure = new TokenRefusedError('503', 24 * 60 * minute)
  await expect(tokens.current()).rejects.toThrow('503')
  state.failure = undefined
  state.nowMs += 5 * minute
  expect(await tokens.current()).toBe('token-2')
})
