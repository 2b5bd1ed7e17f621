import { expect, test } from 'vitest'
import { WrongSecrets } from '../../../../src/admin/console/wrong-secrets.ts'

test('an address that was wrong too often waits, and others do not', () => {
  let nowMs = 0
  const wrong = new WrongSecrets(() => nowMs)
  for (let one = 0; one < 30; one++) {
    expect(wrong.waitMs('198.51.100.7')).toBe(0)
    wrong.note('198.51.100.7')
  }
  const waitMs = wrong.waitMs('198.51.100.7')
  expect(waitMs).toBeGreaterThan(0)
  expect(wrong.waitMs('198.51.100.8')).toBe(0)
  nowMs += waitMs
  expect(wrong.waitMs('198.51.100.7')).toBe(0)
})

test('very many addresses together wait too', () => {
  const wrong = new WrongSecrets(() => 0)
  for (let one = 0; one < 200; one++) wrong.note(`198.51.100.${one}`)
  expect(wrong.waitMs('203.0.113.1')).toBeGreaterThan(0)
})
