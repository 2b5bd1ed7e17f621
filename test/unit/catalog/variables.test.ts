import { describe, expect, it } from 'vitest'
import { fillIn } from '../../../src/catalog/variables.ts'

const variables = { CATALOG_A: 'a', CATALOG_EMPTY: '', HOME: '/root', CATALOG_NESTED: '${CATALOG_A}' }

describe('fillIn', () => {
  it.each([
    ['plain', 'plain'],
    ['${CATALOG_A}', 'a'],
    ['x${CATALOG_A}y${CATALOG_A}', 'xaya'],
    ['$${CATALOG_A}', '${CATALOG_A}'],
    ['$${', '${'],
    ['$5 $ $$', '$5 $ $$'],
    ['${CATALOG_NESTED}', '${CATALOG_A}'],
  ])('makes %j into %j', (text, value) => {
    expect(fillIn(text, variables)).toEqual({ ok: true, value })
  })

  it.each([
    '${CATALOG_GONE}',
    '${CATALOG_EMPTY}',
    '${CATALOG_toString}',
    '${HOME}',
    '${',
    '${}',
    '${CATALOG_A',
  ])('refuses %j', (text) => {
    expect(fillIn(text, variables).ok).toBe(false)
  })

  it('names every variable that is missing', () => {
    const filled = fillIn('${CATALOG_X}${CATALOG_Y}', {})
    expect(filled.ok ? [] : filled.breaches.map(({ advice }) => advice)).toEqual([
      'set CATALOG_X',
      'set CATALOG_Y',
    ])
  })
})
