import { describe, expect, test } from 'vitest'
import { parseCatalog } from '../../../src/catalog/parse.ts'

const secret = 'c0ffee00c0ffee00c0ffee00'

function read(sources: string) {
  return parseCatalog(`sources: ${sources}\ndestinations: []\n`, {
    file: 'catalog.yaml',
    variables: { CATALOG_KEY: secret },
  })
}

function problemOf(sources: string): string {
  const parsed = read(sources)
  return parsed.ok ? '' : parsed.faults.map(({ path, problem }) => `${path} ${problem}`).join('; ')
}

describe('server keys of a source', () => {
  test('may be variables, and sources may share one', () => {
    const parsed = read(`[{ id: a, serverKeys: ["$\{CATALOG_KEY}"] }, { id: b, serverKeys: [${secret}] }]`)
    const keys = parsed.ok ? [...parsed.catalog.sources.values()].map(({ serverKeys }) => serverKeys) : []
    expect(keys).toEqual([[secret], [secret]])
  })

  test.each([
    ['short', '[{ id: a, serverKeys: [secret] }]', 'is not 16 to 200 visible ASCII characters'],
    [
      'a write key of any source',
      `[{ id: a, serverKeys: [${secret}] }, { id: b, writeKeys: [${secret}] }]`,
      'is a write key',
    ],
    [
      'a variable that is not set',
      '[{ id: a, serverKeys: ["${CATALOG_NONE}"] }]',
      'CATALOG_NONE, which is not set',
    ],
  ])('may not be %s', (_, sources, problem) => {
    expect(problemOf(sources)).toContain(problem)
    expect(problemOf(sources)).toContain('sources[0].serverKeys[0]')
    expect(problemOf(sources)).not.toContain(secret)
  })
})

describe('the rate of a source', () => {
  test('is a whole number of messages a second', () => {
    const parsed = read('[{ id: a, maxPerSecond: 500 }, { id: b }]')
    const rates = parsed.ok
      ? [...parsed.catalog.sources.values()].map(({ maxPerSecond }) => maxPerSecond)
      : []
    expect(rates).toEqual([500, undefined])
    expect(problemOf('[{ id: a, maxPerSecond: 0 }]')).toContain('is too small')
    expect(problemOf('[{ id: a, maxPerSecond: 0.5 }]')).toContain('whole number')
  })
})
