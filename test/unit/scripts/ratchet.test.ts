import { expect, test } from 'vitest'
import { baselineOf, compareWithBaseline } from '../../../scripts/ratchet.ts'
import { type OverLimit, readSizes, type SizeRule } from '../../../scripts/sizes.ts'

const limits = { 'max-lines': 400, 'max-lines-per-function': 60, 'max-params': 4 }

function over(rule: SizeRule, ...sizes: readonly number[]): OverLimit[] {
  return sizes.map((size) => ({ file: 'src/a.ts', rule, size }))
}

const allowed = baselineOf([...over('max-lines', 480), ...over('max-params', 5, 6)])

test('what is as large as before is no fault', () => {
  const found = [...over('max-lines', 480), ...over('max-params', 6, 5)]
  expect(compareWithBaseline(found, allowed, limits)).toEqual({ grown: [], shrunk: [] })
})

test.each([
  [
    'grows by a line',
    over('max-lines', 481),
    'src/a.ts: grew from 480 to 481 (limit: 400 lines in the file)',
  ],
  [
    'has a place that grows, though no further than its largest',
    over('max-params', 6, 6),
    'src/a.ts: grew from 5 to 6 (limit: 4 parameters of a function)',
  ],
  [
    'has one place more',
    over('max-params', 5, 5, 5),
    'src/a.ts: 3 places instead of 2 (limit: 4 parameters of a function)',
  ],
  [
    'is over a limit for the first time',
    over('max-lines-per-function', 61),
    'src/a.ts: 61, for the first time (limit: 60 lines in a function)',
  ],
])('a file that %s is a fault', (_, found, fault) => {
  expect(compareWithBaseline(found, allowed, limits).grown).toEqual([fault])
})

test.each([
  ['lines', [...over('max-lines', 479), ...over('max-params', 5, 6)], 'lines in the file'],
  ['parameters', [...over('max-lines', 480), ...over('max-params', 5, 5)], 'parameters of a function'],
  ['places', [...over('max-lines', 480), ...over('max-params', 6)], 'parameters of a function'],
  ['files over a limit', over('max-params', 5, 6), 'lines in the file'],
])('fewer %s is a fault as well, until the baseline follows', (_, found, what) => {
  const shrunk = [`src/a.ts: has become smaller (${what})`]
  expect(compareWithBaseline(found, allowed, limits)).toEqual({ grown: [], shrunk })
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
