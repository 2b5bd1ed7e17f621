import { beforeEach, describe, expect, test } from 'vitest'
import { RefusalBudgets } from '../../../../src/gateway/calls/refusal-budgets.ts'

let nowMs: number
let budgets: RefusalBudgets
beforeEach(() => {
  nowMs = 0
  budgets = new RefusalBudgets(() => nowMs)
})

/** A refused request of 500 KB that has taken 10 ms. */
const large = { ms: 10, bytes: 512_000 }
const v4 = '203.0.113.7'

/** Charges refused requests of 10 ms to a client until its next request has to wait. */
function useUp(address: string, source?: string): void {
  for (let count = 0; budgets.waitMs(address, source) === 0; count++) {
    if (count === 1_000) throw new Error('the budget has no end')
    budgets.charge(address, source, large)
  }
}

describe('a client whose refused requests have taken 100 ms', () => {
  test('waits until its budget has grown again, 5 ms a second', () => {
    useUp(v4, 'shop')
    const waitMs = budgets.waitMs(v4, 'shop')
    expect(waitMs).toBeGreaterThan(0)
    nowMs += waitMs - 1
    expect(budgets.waitMs(v4, 'shop')).toBeGreaterThan(0)
    nowMs += 1
    expect(budgets.waitMs(v4, 'shop')).toBe(0)
    budgets.charge(v4, 'shop', large)
    expect(budgets.waitMs(v4, 'shop')).toBeGreaterThan(0)
  })

  test('may send for other sources, and others may send for its source', () => {
    useUp(v4, 'shop')
    expect(budgets.waitMs(v4, 'other')).toBe(0)
    expect(budgets.waitMs(v4, undefined)).toBe(0)
    expect(budgets.waitMs('203.0.113.8', 'shop')).toBe(0)
  })

  test('is a whole network of IPv6 addresses', () => {
    useUp('2001:db8:1:2::7', 'shop')
    expect(budgets.waitMs('2001:db8:1:2:ffff:1:2:3', 'shop')).toBeGreaterThan(0)
    expect(budgets.waitMs('2001:db8:1:3::7', 'shop')).toBe(0)
  })

  test('is one address of IPv4, also in its mapped spelling', () => {
    useUp('::ffff:203.0.113.7', 'shop')
    expect(budgets.waitMs('::ffff:203.0.113.8', 'shop')).toBe(0)
  })
})

describe('a source whose refused requests of many clients have taken 400 ms', () => {
  test('makes only those clients wait that have been charged lately', () => {
    for (let client = 0; client < 100; client++) budgets.charge(`192.0.2.${client}`, 'shop', large)
    expect(budgets.waitMs('192.0.2.1', 'shop')).toBeGreaterThan(0)
    expect(budgets.waitMs('198.51.100.1', 'shop')).toBe(0)
    expect(budgets.waitMs('192.0.2.1', 'other')).toBe(0)
    nowMs += 2_000
    expect(budgets.waitMs('192.0.2.1', 'shop')).toBe(0)
  })
})

test('a short request that was interrupted is not charged for the interruption', () => {
  for (let count = 0; count < 100; count++) budgets.charge(v4, 'shop', { ms: 100, bytes: 1_000 })
  expect(budgets.waitMs(v4, 'shop')).toBe(0)
})

test('nothing is looked up before anything was refused', () => {
  expect(budgets.isUsed).toBe(false)
  budgets.charge(v4, 'shop', large)
  expect(budgets.isUsed).toBe(true)
  nowMs += 60_000
  expect(budgets.waitMs(v4, 'shop')).toBe(0)
  expect(budgets.isUsed).toBe(false)
})

test('no more than ten thousand clients are kept, and those that were charged last', () => {
  useUp('old', 'shop')
  useUp('kept', 'shop')
  for (let client = 0; client < 9_999; client++) budgets.charge(`client ${client}`, 'many', large)
  expect(budgets.waitMs('old', 'shop')).toBe(0)
  expect(budgets.waitMs('kept', 'shop')).toBeGreaterThan(0)
})
