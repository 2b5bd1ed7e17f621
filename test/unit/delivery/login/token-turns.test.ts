import { expect, test } from 'vitest'
import { type TokenAsker, TokenTurns } from '../../../../src/delivery/login/token-turns.ts'

// Whose request for a token is made when. Requests end when the test says so, by a clock of the test.

function scene(mostAtOnce = 12) {
  let nowMs = 0
  const turns = new TokenTurns({ mostAtOnce, monotonicMs: () => nowMs })
  const underWay: { name: string; end(): void }[] = []
  const begun: string[] = []
  let most = 0
  return {
    underWay,
    begun,
    most: () => most,
    later: (ms: number) => void (nowMs += ms),
    asks(name: string, asker: Partial<TokenAsker> = {}): void {
      const ask = () =>
        new Promise<void>((end) => {
          begun.push(name)
          most = Math.max(most, underWay.push({ name, end }))
        })
      void turns.run({ tokenOrigin: 'login', sourceId: 'shop', urgency: 'first', ...asker }, ask)
    },
    /** Ends the request of that name, or the oldest one. */
    async ends(name = underWay[0]?.name): Promise<void> {
      const at = underWay.findIndex((one) => one.name === name)
      underWay.splice(at, 1)[0]?.end()
      await new Promise(setImmediate)
    },
  }
}

test('a thousand logins that begin at once make a few requests at once, and each has its turn', async () => {
  const one = scene(48)
  for (let at = 0; at < 1_000; at++)
    one.asks(`d${at}`, { tokenOrigin: `login-${at}`, sourceId: `shop-${at}` })
  expect(one.underWay).toHaveLength(48)
  while (one.underWay.length > 0) await one.ends()
  expect([one.most(), one.begun.length]).toEqual([48, 1_000])
})

test('a token endpoint that hangs, and a source with many, leave places for others', () => {
  const one = scene(12)
  for (let at = 0; at < 100; at++) one.asks(`hangs-${at}`, { sourceId: `shop-${at}` })
  for (let at = 0; at < 100; at++) one.asks(`many-${at}`, { sourceId: 'many', tokenOrigin: `login-${at}` })
  one.asks('other', { sourceId: 'other', tokenOrigin: 'other' })
  expect(one.begun.filter((name) => name.startsWith('hangs'))).toHaveLength(8)
  expect(one.begun).toContain('other')
})

test('sources take turns, and the token endpoints of a source do too', async () => {
  const one = scene(1)
  one.asks('busy')
  for (const [name, sourceId, tokenOrigin] of [
    ['a1', 'a', 'x'],
    ['a2', 'a', 'x'],
    ['a3', 'a', 'y'],
    ['b1', 'b', 'z'],
  ] as const)
    one.asks(name, { sourceId, tokenOrigin })
  while (one.underWay.length > 0) await one.ends()
  expect(one.begun).toEqual(['busy', 'a1', 'b1', 'a3', 'a2'])
})

test('a login that has worked comes before those that begin, and these before those that fail', async () => {
  const one = scene(1)
  one.asks('busy')
  one.asks('failed', { urgency: 'again' })
  one.asks('begins', { urgency: 'first' })
  one.asks('renews', { urgency: 'renewal' })
  while (one.underWay.length > 0) await one.ends()
  expect(one.begun).toEqual(['busy', 'renews', 'begins', 'failed'])
})

test('a thousand logins that fail make twenty requests a second, in half of the places', async () => {
  const one = scene(12)
  for (let at = 0; at < 1_000; at++)
    one.asks(`d${at}`, { urgency: 'again', tokenOrigin: `login-${at}`, sourceId: `shop-${at}` })
  expect(one.underWay).toHaveLength(6)
  while (one.underWay.length > 0) await one.ends()
  expect(one.begun).toHaveLength(20)
  // Somebody who has worked before needs no such turn.
  one.asks('renews', { urgency: 'renewal' })
  expect(one.begun).toContain('renews')
})
