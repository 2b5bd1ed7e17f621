import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { occurring } from '../../../src/secrets/occurring.ts'
import { withoutSecrets } from '../../../src/secrets/without-secrets.ts'

const letters = fc.constantFrom(
  'a',
  'B',
  '1',
  '-',
  '_',
  '.',
  '@',
  '%',
  '&',
  '/',
  '\u00e9',
  '\u00a0',
  '\u2028',
  '\u{1f600}',
)
const id = fc.string({ unit: letters, maxLength: 20 })
/** As servers write a text into an answer. */
const spelling = fc.constantFrom<(text: string) => string>(
  (text) => text,
  (text) => text.toUpperCase(),
  (text) => encodeURIComponent(text.toWellFormed()),
  (text) => JSON.stringify(text),
  (text) => text.replaceAll(/./gsu, (one) => `&#${one.codePointAt(0)};`),
  (text) => Buffer.from(text, 'utf16le').toString('latin1'),
)

test('a mask of those that may occur in a text is the same as a mask of all', () => {
  let left = 0
  fc.assert(
    fc.property(
      fc.array(id, { minLength: 12, maxLength: 30 }),
      fc.array(fc.tuple(fc.nat(), spelling, fc.nat(20), fc.string({ maxLength: 5 })), { maxLength: 6 }),
      fc.nat(60),
      (ids, pieces, limit) => {
        const said = pieces.map(
          ([at, spelled, from, after]) => spelled((ids[at % ids.length] ?? '').slice(from)) + after,
        )
        const text = Buffer.from(said.join(' '))
        const found = occurring(text, ids, limit)
        left += ids.length - found.length
        const masked = (secrets: readonly string[]) =>
          withoutSecrets(text, [], secrets, Math.min(limit, text.length))
        expect(masked(found).toString()).toBe(masked(ids).toString())
      },
    ),
    { numRuns: 2_000 },
  )
  // Otherwise this would prove nothing.
  expect(left).toBeGreaterThan(1_000)
})

test('of a thousand users only those that a text names are looked for', () => {
  const users = Array.from({ length: 1_000 }, (_, at) => `user-${at * 7_919 + 100_000}@example.com`)
  const text = Buffer.from(
    `no such user: ${users[7]}, ${encodeURIComponent(users[8] ?? '')}; ${users[9]?.slice(0, 9)}`,
  )
  // They have the beginning `user-1` in common, of which six characters tell them apart no more.
  const short = users.map((user) => user.slice(5))
  expect(occurring(text, short)).toEqual(expect.arrayContaining([short[7], short[8], short[9]]))
  expect(occurring(Buffer.from('nobody of yours'), short)).toEqual([])
})
