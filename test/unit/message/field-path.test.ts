import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseJson } from '../../../src/message/json/json.ts'
import { someValueAt, someValueIn } from '../../../src/message/field-path.ts'

type Plain = string | number | boolean

/** Names that messages and paths have, so that paths often lead somewhere. */
const name = fc.constantFrom('a', 'b', 'a.b', '"', '\\', '__proto__', 'é', '0')

const { node } = fc.letrec((tie) => ({
  node: fc.oneof(
    { maxDepth: 6 },
    fc.oneof(fc.string({ unit: 'binary' }), fc.double({ noNaN: true }), fc.boolean(), fc.constant(null)),
    fc.array(tie('node'), { maxLength: 4 }),
    fc.dictionary(name, tie('node'), { maxKeys: 4 }),
  ),
}))

test('a text is read as its value is, up to the value with which it ends', () => {
  fc.assert(
    fc.property(node, fc.array(name, { minLength: 1, maxLength: 3 }), fc.nat(5), (given, path, most) => {
      const text = JSON.stringify(given)
      const parsed = parseJson(text)
      const value = parsed.ok ? parsed.value : undefined
      const taken = (look: (take: (one: Plain) => boolean) => boolean) => {
        const found: Plain[] = []
        const isOver = look((one) => found.push(one) > most)
        return { found, isOver }
      }
      expect(taken((take) => someValueIn(text, path, take))).toEqual(
        taken((take) => someValueAt(value, path, take)),
      )
    }),
  )
})

test('a text that is no JSON has no values', () => {
  for (const text of ['', 'x', '{', '[', '{"a"', '{"a":', '[1', '}', ']', '[}', '[:', '[{"a":}'])
    expect(someValueIn(text, ['a'], () => true)).toBe(false)
})
