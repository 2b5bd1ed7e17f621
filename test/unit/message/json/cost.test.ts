import { expect, test } from 'vitest'
import { endOfString } from '../../../../src/message/json/json-walk.ts'
import { costRatio } from '../../../support/cost.ts'

/** To search for each escape by itself takes three times as long as to parse the text. */
const most = 2

test('to find the end of a text of escapes costs little more than to parse it', () => {
  const text = JSON.stringify('\n'.repeat(100_000))
  expect(endOfString(text, 0)).toBe(text.length)
  const walk = (): number => endOfString(text, 0)
  const parse = (): string => String(JSON.parse(text))
  expect(costRatio(walk, parse, most)).toBeLessThan(most)
})
