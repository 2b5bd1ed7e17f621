import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { contrast, fitAccent } from '../../../src/console/data/accent.ts'

const colour = fc.tuple(
  fc.integer({ min: 0, max: 255 }),
  fc.integer({ min: 0, max: 255 }),
  fc.integer({ min: 0, max: 255 }),
)
const hexOf = (parts: readonly number[]): string =>
  `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`
const partsOf = (hex: string): [number, number, number] => {
  const part = (at: number): number => Number.parseInt(hex.slice(at, at + 2), 16)
  return [part(1), part(3), part(5)]
}

test('any accent becomes readable on the page, on its pale form, and below its text', () => {
  fc.assert(
    fc.property(colour, fc.constantFrom('light' as const, 'dark' as const), (given, theme) => {
      const fitted = fitAccent(hexOf(given), theme)
      const back = theme === 'light' ? ([255, 255, 255] as const) : ([20, 23, 27] as const)
      const accent = partsOf(fitted?.accent ?? '')
      for (const other of [back, partsOf(fitted?.pale ?? ''), partsOf(fitted?.on ?? '')])
        expect(contrast(accent, other)).toBeGreaterThanOrEqual(4.5)
    }),
  )
})

test('a colour that can be read stays as it is, and what is no colour is none', () => {
  expect(fitAccent('#0a5c40', 'light')?.accent).toBe('#0a5c40')
  for (const text of ['', 'red', '#12', '#0a5c4', 'url(x)']) expect(fitAccent(text, 'light')).toBeUndefined()
})
