import { expect, test } from 'vitest'
import { satisfies } from '../../../src/topics/topic-settings.ts'

test.each([
  ['compact,delete', true],
  ['delete,compact', true],
  ['delete, compact', true],
  ['compact', false],
  ['delete', false],
])('of the policies that a topic may have, %s is the wanted list: %s', (actual, isWanted) => {
  const setting = { name: 'cleanup.policy', value: 'compact,delete', rule: 'equal' } as const
  expect(satisfies(setting, actual)).toBe(isWanted)
})

test.each([
  ['1000', true],
  ['1001', true],
  ['-1', true],
  ['999', false],
  [undefined, false],
])('a retention of %s is long enough: %s', (actual, isEnough) => {
  const setting = { name: 'retention.ms', value: '1000', rule: 'atLeast' } as const
  expect(satisfies(setting, actual)).toBe(isEnough)
})
