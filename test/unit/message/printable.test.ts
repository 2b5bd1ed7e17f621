import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { printable } from '../../../src/message/printable.ts'

test.each([
  ['an ESC sequence', '\u001b[2Jgone', '\\u001b[2Jgone'],
  ['the same as one C1 character', '\u009b2Jgone', '\\u009b2Jgone'],
  ['a carriage return', 'paid\runpaid', 'paid\\u000dunpaid'],
  ['a backspace and DEL', 'a\b\u007f', 'a\\u0008\\u007f'],
  ['a text that is shown from right to left', 'order-\u202e1174', 'order-\\u202e1174'],
  ['isolates', '\u2066a\u2069', '\\u2066a\\u2069'],
  ['a separator of lines', 'a\u2028b', 'a\\u2028b'],
  ['what is only unusual', 'é 日本 \u{1f600} \t|', 'é 日本 \u{1f600} \t|'],
  ['lines', 'a\nb', 'a\nb'],
])('%s is shown as what it is', (_, text, shown) => {
  expect(printable(text)).toBe(shown)
})

test('JSON stays the same JSON, and has nothing that a terminal obeys', () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: 'binary' }), (json) => {
      const shown = printable(json)
      expect(JSON.parse(shown)).toEqual(JSON.parse(json))
      // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
      expect(shown).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/)
    }),
  )
})
