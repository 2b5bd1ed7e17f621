import { expect, test } from 'vitest'
import { baselineOf, compareWithBaseline } from '../../../scripts/ratchet.ts'
import { type OverLimit, readSizes, type SizeRule } from '../../../scripts/sizes.ts'

const limits = { 'max-lines': 400, 'max-lines-per-function': 60, 'max-params': 4 }

function over(rule: SizeRule, ...sizes: readonly number[]): OverLimit[] {
  return sizes.map((size) => ({ file: 'src/a.ts', rule, size }))
}

const allowed = baselineOf([...over('max-lines', 480), ...over('max-params', 5, 6)])

test('what is as large as before is no fault, and neither is a line more in a large file', () => {
  const found = [...over('max-lines', 481), ...over('max-params', 5, 6)]
  expect(compareWithBaseline(found, allowed, limits)).toEqual({ grown: [], shrunk: false })
})

test.each([
  ['grows', over('max-lines', 501), 'src/a.ts: grew beyond 500 (limit: 400 lines in the file)'],
  [
    'has one place more',
    over('max-params', 5, 5, 5),
    'src/a.ts: 3 places instead of 2 (limit: 4 parameters of a function)',
  ],
  [
    'is over a limit for the first time',
    over('max-lines-per-function', 61),
    'src/a.ts: 70 or fewer, over the limit of 60 lines in a function',
  ],
])('a file that %s is a fault', (_, found, fault) => {
  expect(compareWithBaseline(found, allowed, limits).grown).toEqual([fault])
})

test.each([
  ['lines', [...over('max-lines', 430), ...over('max-params', 5, 6)]],
  ['places', [...over('max-lines', 480), ...over('max-params', 6)]],
  ['nothing left', over('max-params', 5, 6)],
])('fewer %s has the baseline shrink', (_, found) => {
  expect(compareWithBaseline(found, allowed, limits)).toEqual({ grown: [], shrunk: true })
})

function printed(code: string, message: string): string {
  return JSON.stringify({ diagnostics: [{ code, message, filename: 'src/a.ts' }] })
}

test('sizes are read from what oxlint prints, and anything else is an error', () => {
  expect(readSizes(printed('eslint(max-lines)', 'File has too many lines (401).'))).toEqual(
    over('max-lines', 401),
  )
  expect(() => readSizes(printed('eslint(no-var)', 'no'))).toThrow("can't be read here")
  expect(() => readSizes('{}')).toThrow('no list')
})
