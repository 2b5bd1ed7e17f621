import { describe, expect, test } from 'vitest'
import { type AskedToken, TokenLogin } from '../../../../src/delivery/login/token-login.ts'
import type { TokenResult } from '../../../../src/delivery/login/token-request.ts'

// When a token is asked for, by a clock of the test. The token endpoint answers when the test says so.

const minute = 60_000

function scene() {
  let nowMs = 1_000_000
  const open: { askedMs: number; resolve(result: TokenResult): void }[] = []
  const urgencies: string[] = []
  const told: AskedToken[] = []
  let asked = 0
  const login = new TokenLogin({
    now: () => nowMs,
    onAsked: (one) => void told.push(one),
    ask: (urgency) => {
      asked++
      urgencies.push(urgency)
      return new Promise((resolve) => open.push({ askedMs: nowMs, resolve }))
    },
  })
  const answer = async (result: (askedMs: number) => TokenResult): Promise<void> => {
    const one = open.shift()
    one?.resolve(result(one.askedMs))
    await Promise.resolve()
    await new Promise(setImmediate)
  }
  return {
    login,
    told,
    asked: () => asked,
    later: (ms: number) => void (nowMs += ms),
    gives: (value: string, lifeMs = 10 * minute) =>
      answer((askedMs) => ({ ok: true, token: { value, endsMs: nowMs + lifeMs }, askedMs })),
    fails: (problem = 'no', afterMs = 0) => answer(() => ({ ok: false, problem, afterMs })),
    urgencies,
  }
}

test('many who ask at once share one request, and its token', async () => {
  const one = scene()
  expect([one.login.state(), one.login.state(), one.login.token()]).toEqual(['asking', 'asking', undefined])
  const waiting = Promise.all([one.login.wait(), one.login.wait()])
  await one.gives('first')
  expect(await waiting).toEqual(['first', 'first'])
  expect([one.login.state(), one.asked()]).toEqual(['ready', 1])
})

test('a token is renewed before it ends, and used until the new one is there', async () => {
  const one = scene()
  one.login.token()
  await one.gives('first', 10 * minute)
  one.later(8 * minute - 1)
  expect([one.login.token(), one.asked()]).toEqual(['first', 1])
  one.later(1)
  expect([one.login.token(), one.login.token(), one.asked()]).toEqual(['first', 'first', 2])
  await one.gives('second')
  expect(one.login.token()).toBe('second')
})

test('a token is not used in the last moments of its lifetime', async () => {
  const one = scene()
  one.login.token()
  await one.gives('first', 10 * minute)
  one.later(10 * minute - 5_001)
  expect(one.login.token()).toBe('first')
  one.later(1)
  expect([one.login.token(), one.login.state()]).toEqual([undefined, 'asking'])
})

test('a token that lives for a second can be used', async () => {
  const one = scene()
  one.login.token()
  await one.gives('first', 1_000)
  one.later(850)
  expect(one.login.token()).toBe('first')
})

describe('while the token endpoint fails', () => {
  test('it is asked again after pauses that double, and only if somebody needs the token', async () => {
    const one = scene()
    expect(one.login.state()).toBe('asking')
    await one.fails('status 503')
    expect([one.login.state(), one.login.problem, one.asked()]).toEqual(['failing', 'status 503', 1])
    for (const [pauseMs, asked] of [
      [1_200, 2],
      [2_400, 3],
      [4_800, 4],
    ] as const) {
      one.later(pauseMs / 2)
      one.login.state()
      expect(one.asked()).toBe(asked - 1)
      one.later(pauseMs / 2)
      expect([one.login.state(), one.asked()]).toEqual(['failing', asked])
      await one.fails()
    }
    one.later(60 * minute)
    expect(one.asked()).toBe(4)
    expect(one.login.state()).toBe('failing')
    await one.gives('first')
    expect([one.login.state(), one.login.problem]).toEqual(['ready', undefined])
    expect(one.told.at(-1)).toEqual({ problem: undefined, isKept: false })
  })

  test('a pause that it asks for is kept, up to five minutes', async () => {
    const one = scene()
    one.login.state()
    await one.fails('status 429', 60 * minute)
    one.later(5 * minute - 1)
    one.login.state()
    expect(one.asked()).toBe(1)
    one.later(1)
    one.login.state()
    expect(one.asked()).toBe(2)
  })

  test('a token that is still valid stays in use', async () => {
    const one = scene()
    one.login.token()
    await one.gives('first', 10 * minute)
    one.later(8 * minute)
    one.login.token()
    await one.fails()
    expect([one.login.state(), one.login.token()]).toEqual(['ready', 'first'])
    expect(one.told.at(-1)).toEqual({ problem: 'no', isKept: true })
    one.later(2 * minute)
    expect(one.login.state()).toBe('failing')
    one.later(3_000)
    expect(one.login.failingForMs).toBe(3_000)
  })
})

async function withToken() {
  const one = scene()
  one.login.token()
  await one.gives('first')
  return one
}

describe('a token that a server has refused', () => {
  test('is replaced once, however many requests had it', async () => {
    const one = await withToken()
    const all = Promise.all([1, 2, 3].map(() => one.login.replacement('first')))
    await one.gives('second')
    expect(await all).toEqual(['second', 'second', 'second'])
    expect(await one.login.replacement('first')).toBe('second')
    expect(one.asked()).toBe(2)
  })

  test('is never given again', async () => {
    const one = await withToken()
    const replaced = one.login.replacement('first')
    await one.gives('first')
    expect(await replaced).toBeUndefined()
  })

  test('is not replaced again and again if the server refuses every token', async () => {
    const one = await withToken()
    expect(one.login.mayReplace('first')).toBe(true)
    const replaced = one.login.replacement('first')
    await one.gives('second')
    await replaced
    expect(one.login.mayReplace('first')).toBe(true)
    expect(one.login.mayReplace('second')).toBe(false)
    one.later(10_000)
    expect(one.login.mayReplace('second')).toBe(true)
  })

  test('is replaced twice more if it was never accepted, and an earlier one was', async () => {
    const one = await withToken()
    one.login.accepted('first')
    const tokens = ['first', 'second', 'third', 'fourth']
    for (const [at, next] of tokens.slice(1).entries()) {
      expect(one.login.mayReplace(tokens[at] ?? '')).toBe(true)
      const replaced = one.login.replacement(tokens[at] ?? '')
      await one.gives(next)
      expect(await replaced).toBe(next)
    }
    expect(one.login.mayReplace('fourth')).toBe(false)
    one.later(10_000)
    expect(one.login.mayReplace('fourth')).toBe(true)
  })

  test('is replaced at once if it was accepted before', async () => {
    const one = await withToken()
    const replaced = one.login.replacement('first')
    await one.gives('second')
    await replaced
    one.login.accepted('second')
    expect(one.login.mayReplace('second')).toBe(true)
  })
})

test('a token that is refused for some requests, and accepted for others, is replaced once a second at most', async () => {
  const one = await withToken()
  const replace = async (value: string, next: string): Promise<boolean> => {
    one.login.accepted(value)
    if (!one.login.mayReplace(value)) return false
    const replaced = one.login.replacement(value)
    await one.gives(next)
    expect(await replaced).toBe(next)
    return true
  }
  let present = 'first'
  let at = 0
  while (await replace(present, `token-${at}`)) present = `token-${at++}`
  expect([at, one.asked()]).toEqual([10, 11])
  one.later(1_000)
  expect(await replace(present, 'later')).toBe(true)
  one.login.accepted('later')
  expect(one.login.mayReplace('later')).toBe(false)
  // Those that had an earlier one are made again with the present one.
  expect(one.login.mayReplace(present)).toBe(true)
})

test('tokens that end within a second are asked for with pauses, and the login says so', async () => {
  const one = scene()
  one.login.token()
  await one.gives('brief', 999)
  expect([one.login.token(), one.login.state(), one.asked()]).toEqual([undefined, 'failing', 1])
  expect(one.login.problem).toContain('longer expires_in')
  one.later(1_200)
  one.login.token()
  await one.gives('lasting')
  expect([one.login.token(), one.login.problem]).toEqual(['lasting', undefined])
})

test('tokens that have ended when they arrive are asked for with pauses, and the login says so', async () => {
  const one = scene()
  one.login.token()
  one.later(3_000)
  await one.gives('late', -1_500)
  expect(one.login.token()).toBeUndefined()
  expect([one.login.state(), one.asked()]).toEqual(['failing', 1])
  expect(one.login.problem).toContain('have ended when they arrive')
  one.later(1_200)
  one.login.token()
  await one.gives('next')
  expect([one.login.token(), one.login.problem]).toEqual(['next', undefined])
})

test('a login is known as one that begins, one that has failed, and one that has had a token', async () => {
  const one = scene()
  one.login.token()
  await one.fails()
  one.later(1_200)
  one.login.token()
  await one.gives('first', 10 * minute)
  one.later(8 * minute)
  one.login.token()
  expect(one.urgencies).toEqual(['first', 'again', 'renewal'])
})

test('a login that has to wait long for its turn counts as one that fails, until its token is there', async () => {
  const one = scene()
  expect(one.login.state()).toBe('asking')
  one.later(5_999)
  expect(one.login.state()).toBe('asking')
  one.later(1)
  // Its messages wait in Kafka, and not in memory.
  expect([one.login.state(), one.login.problem, one.login.failingForMs]).toEqual(['failing', undefined, 0])
  await one.gives('first')
  expect([one.login.state(), one.asked()]).toEqual(['ready', 1])
})
