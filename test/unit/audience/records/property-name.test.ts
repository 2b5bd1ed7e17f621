import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { propertyName } from '../../../../src/audience/records/property-name.ts'

/** The rows of the table in docs/property-names.md. */
const published = readFileSync(new URL('../../../../docs/property-names.md', import.meta.url), 'utf8')
  .split('\n')
  .flatMap((line): [name: string, property: string | undefined][] => {
    const [, name, property] = /^\| `([^`]+)` +\| (?:`([^`]+)`|none) +\|/.exec(line) ?? []
    return name === undefined ? [] : [[name, property]]
  })

const named = (name: string): string | undefined => propertyName({ key: undefined, name })

describe('the name of a property', () => {
  test.each(published)('%s is %s, as the documentation says', (name, property) => {
    expect(named(name)).toBe(property)
  })

  test('is published for enough names', () => {
    expect(published.length).toBeGreaterThan(35)
  })

  test.each([
    ['  Big spenders  ', 'big_spenders'],
    ['Cafe\u0301 lovers', 'café_lovers'],
    ['e\ufe0f\u0301', 'é'],
    ['J\u030colly', 'ǰolly'],
    ['OSes', 'oses'],
    ['IDsOfVIPs', 'ids_of_vips'],
    ['aDVDs', 'a_dvds'],
    ['XAxis', 'x_axis'],
    ['As', 'as'],
    ['isAs', 'is_as'],
    ['30Days', '30days'],
    ['MP3s', 'mp3s'],
    ['iOS18Users', 'i_os18users'],
  ])('%j is %j', (name, property) => {
    expect(named(name)).toBe(property)
  })

  test.each(['!!!', '❤️🎉', '   ', '\u0301', '\ud800'])('nothing is left of %j', (name) => {
    expect(named(name)).toBeUndefined()
  })

  test('a key wins over the name, and is taken as it is', () => {
    expect(propertyName({ key: 'My-Key 1', name: 'Other' })).toBe('My-Key 1')
    expect(propertyName({ key: '__proto__', name: 'Other' })).toBe('__proto__')
    expect(propertyName({ key: '  ', name: 'Other' })).toBeUndefined()
  })

  test('a name of 1,000 characters is no trouble', () => {
    expect(named('a'.repeat(1_000))).toBe('a'.repeat(1_000))
    expect(named('aA'.repeat(500))?.length).toBe(1_500)
  })

  test('whatever the name: it has words of letters, marks and digits, is the name of itself, and is there if the name has any', () => {
    fc.assert(
      fc.property(names, (name) => {
        const made = named(name)
        expect(made !== undefined).toBe(/[\p{L}\p{N}]/u.test(name))
        if (made === undefined) return
        expect(made).toMatch(/^[\p{L}\p{N}][\p{L}\p{N}\p{M}]*(?:_[\p{L}\p{N}][\p{L}\p{N}\p{M}]*)*$/u)
        expect(made).toBe(made.toLowerCase().normalize('NFC'))
        expect(named(made)).toBe(made)
      }),
      { numRuns: 5_000 },
    )
  })

  test('whatever the name, all of its letters and digits stay, in their order', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'abzSsXeABZ019éÉжЖ -_.'.split('')), maxLength: 30 }),
        (name) => {
          expect((named(name) ?? '').replaceAll('_', '')).toBe(name.toLowerCase().replace(/[ \-_.]/g, ''))
        },
      ),
      { numRuns: 2_000 },
    )
  })

  test('whatever the name, no word begins or ends beside a digit but where the name says so', () => {
    const letterOrDigit = fc.constantFrom(...'abcABCs123'.split(''))
    fc.assert(
      fc.property(fc.string({ unit: letterOrDigit, maxLength: 20 }), (name) => {
        expect(named(name) ?? '').not.toMatch(/\d_|_\d/)
      }),
      { numRuns: 2_000 },
    )
  })

  test('whatever the acronym, its plural is the acronym with an s', () => {
    const acronym = fc.string({
      unit: fc.constantFrom(...'ABCDEFGHIPQRSTUVXYZ'.split('')),
      minLength: 2,
      maxLength: 6,
    })
    const before = fc.constantFrom('', 'user', 'The ', 'my_')
    const after = fc.constantFrom('', ' of EU', 'Of', '2')
    fc.assert(
      fc.property(before, acronym, after, (head, letters, tail) => {
        const made = named(`${head}${letters}s${tail}`)
        expect(made?.split('_')).toContainEqual(
          expect.stringMatching(new RegExp(`^${letters.toLowerCase()}s2?$`)),
        )
      }),
      { numRuns: 1_000 },
    )
  })
})

const names = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 50 }),
  fc.string({ unit: 'grapheme', maxLength: 50 }),
  fc.string({
    unit: fc.constantFrom(
      'a',
      's',
      'e',
      'B',
      'S',
      '7',
      'é',
      'É',
      'ß',
      'Σ',
      'İ',
      'J\u030c',
      '\u0301',
      '\ufe0f',
      '𝐀',
      'ǅ',
      '٣',
      '½',
      'ह',
      'ि',
      ' ',
      '-',
    ),
    maxLength: 30,
  }),
)
