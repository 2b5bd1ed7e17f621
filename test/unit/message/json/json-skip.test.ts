import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { skipValue, weigh } from '../../../../src/message/json/json-skip.ts'
import { spelledJson } from '../json-text.ts'

test('a value ends where it ends, however it is spelled', () => {
  const rest = fc.constantFrom(',"\\"",{"a":[', ']', '}', ', ')
  fc.assert(
    fc.property(spelledJson, rest, ({ text }, after) => {
      const spelled = text.trim()
      const bytes = Buffer.from(spelled + after)
      expect(bytes.toString('utf8', 0, skipValue(bytes, 0)).trim()).toBe(spelled)
    }),
    { numRuns: 2_000 },
  )
})

test('a long text ends at its quotation mark, whatever escapes are in it', () => {
  const part = fc.constantFrom('x'.repeat(70), '\\"', '\\\\', '\\\\\\"', 'é', '[', ',', '\\n'.repeat(40))
  fc.assert(
    fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
      const text = `"${parts.join('')}"`
      const bytes = Buffer.from(`${text},"x"]`)
      expect(bytes.toString('utf8', 0, skipValue(bytes, 0))).toBe(text)
      const { bytes: all, long } = weigh(bytes, 0, Infinity)
      expect(all).toBe(Buffer.byteLength(text))
      expect(long).toBe(Math.max(0, all - 64))
    }),
    { numRuns: 2_000 },
  )
})

test('weighing ends after as many bytes as may be looked at, beside long texts', () => {
  const bytes = Buffer.from(`["${'x'.repeat(10_000)}"${',{}'.repeat(10_000)}]`)
  expect(weigh(bytes, 0, 1_000).bytes).toBeLessThan(11_100)
  expect(weigh(bytes, 0, Infinity).bytes).toBe(bytes.length)
})
