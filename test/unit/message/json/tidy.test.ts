import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { messagePlaces } from '../../../../src/message/canonical-fields.ts'
import { scanObject } from '../../../../src/message/canonical-scan.ts'
import { respell, respelledText } from '../../../../src/message/json/respell.ts'
import { copyTidied, tidy } from '../../../../src/message/json/tidy.ts'
import { Random } from '../../../support/random.ts'
import { spelledJson, spelledMessage } from '../json-text.ts'

const limits = { maxDepth: 32, maxKeys: 10_000 }
const places = messagePlaces({ nested: true })

type Spelling = { readonly end: number; readonly text: string; readonly lostDigits: number }

/** Returns the canonical spelling of an object, if it is canonical when it is tidied. */
function tidySpelling(bytes: Buffer): Spelling | undefined {
  const tidied = tidy(bytes, 0)
  if (tidied === undefined) return undefined
  const { end, length } = tidied
  const written = Buffer.alloc(length)
  copyTidied(written, 0, length)
  places.reset(written)
  places.begin()
  if (scanObject(written, 0, places, limits) !== length) return undefined
  return { end, text: written.toString(), lostDigits: 0 }
}

function respelled(bytes: Buffer): Spelling | undefined {
  const result = respell(bytes, 0, limits)
  return result && { end: result.end, text: respelledText(), lostDigits: result.lostDigits }
}

/** Counts the objects that are canonical when they are tidied. */
class Agreement {
  tidied = 0

  /** Returns true if an object isn't canonical when it is tidied, or if it is respelled in the same way. */
  of(bytes: Buffer): boolean {
    const spelling = tidySpelling(bytes)
    if (spelling === undefined) return true
    this.tidied++
    return isDeepStrictEqual(spelling, respelled(bytes))
  }
}

const inObject = fc.tuple(spelledJson, spelledJson).map(([a, b]) => `{"a" : ${a.text} , "b":\n${b.text} }`)
const object = fc.oneof(
  inObject,
  spelledMessage.map(({ text }) => text),
)

/** Bytes that mean something in JSON. */
const telling = Buffer.from('{}[]:,"\\ \n\t\0-+.0159eEtrufalsn/')

describe('an object that is canonical when it is tidied', () => {
  test('is respelled in the same way', () => {
    const agreement = new Agreement()
    fc.assert(
      fc.property(object, (text) => agreement.of(Buffer.from(`${text} , more`))),
      { numRuns: 5_000 },
    )
    expect(agreement.tidied).toBeGreaterThan(500)
  })

  test('is respelled in the same way when single bytes are changed, added or left out', () => {
    const agreement = new Agreement()
    const random = new Random(1)
    const change = (bytes: Buffer): Buffer => {
      const at = random.below(bytes.length)
      const from = random.oneIn(2) ? at : at + 1
      const put = random.oneIn(3) ? [] : [random.pick([...telling])]
      return Buffer.concat([bytes.subarray(0, at), Buffer.from(put), bytes.subarray(from)])
    }
    fc.assert(
      fc.property(object, (text) => {
        // A change within a letter of several bytes would be no UTF-8.
        let bytes: Buffer = Buffer.from(text.replaceAll(/[^\0-\x7f]/g, 'x'))
        for (let times = 0; times < 5; times++) {
          bytes = change(bytes)
          if (!agreement.of(bytes)) return false
        }
        return true
      }),
      { numRuns: 5_000 },
    )
    expect(agreement.tidied).toBeGreaterThan(500)
  })

  test.each([
    ['as Python writes it', '{"a": 1.0, "b": [true, null], "c": {"d": "\\u00e9 \\ud83d\\ude00"}}'],
    ['as PHP writes it', '{"url":"https:\\/\\/caf\\u00e9.example\\/"}'],
    ['on several lines', '{\n  "a": [\n    1,\n    {}\n  ],\r\n\t"b" : {\n  }\n}'],
    ['with numbers of other languages', '{"a":1.50,"b":1e5,"c":1.0E3,"d":-0.0,"e":100000.0}'],
    ['with text that looks like JSON', '{"a": "b: c, [d ] \\" , \\\\", "e: f, ": 1}'],
  ])('is one %s', (_how, text) => {
    expect(tidySpelling(Buffer.from(text))).toEqual({
      end: Buffer.byteLength(text),
      text: JSON.stringify(JSON.parse(text)),
      lostDigits: 0,
    })
  })
})

test.each([
  ['two words with a space between them', '{"a":tr ue}'],
  ['two numbers with a space between them', '{"a":1 2}'],
  ['two numbers of which one has a sign', '{"a":100-0}'],
  ['three numbers of which two have a sign', '{"a":1.0-0-0}'],
  ['two texts with a space between them', '{"a":"b" "c"}'],
  ['a fraction without a number', '{"a":.0}'],
  ['two fractions', '{"a":1.0.0}'],
  ['a number with a zero before it', '{"a":01.0}'],
  ['a text without an end', '{"a": "b}'],
  ['an object without an end', '{"a": {}'],
  ['a line within a text', '{"a": "b\n"}'],
  ['an escape that isn’t one', '{"a": "\\x"}'],
  ['half of an escape', '{"a": "\\u00"}'],
  ['a number that loses digits', '{"a": 12345678901234567890}'],
  ['a number beyond all doubles', '{"a": 1e999}'],
  ['what is no number', '{"a": NaN}'],
  ['a key that repeats', '{"a": 1, "a": 2}'],
  ['an index', '{"1": 1}'],
  ['a list', '[1, 2]'],
  ['a long object', `{"a": "${'x'.repeat(8_192)}"}`],
  ['a long object of escapes', `{"a": "${'\\u0041'.repeat(8_192)}"}`],
])('no result has %s', (_what, text) => {
  expect(tidySpelling(Buffer.from(text))).toBeUndefined()
})
