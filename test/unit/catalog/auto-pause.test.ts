import { describe, expect, test } from 'vitest'
import { autoPauseMsOf, restrained, urlsDigestOf, withChangedSince } from '../../../src/catalog/auto-pause.ts'
import type { Catalog, Destination } from '../../../src/catalog/catalog.ts'
import { changedDestinations, nextCatalog } from '../../../src/catalog/next-catalog.ts'
import { formatFault } from '../../../src/catalog/fault.ts'
import { type ParsedCatalog, parseCatalog } from '../../../src/catalog/parse.ts'

const hook = 'https://example.com/hook'

/** Reads a catalog with destinations that have these lines. The keys are the ids of the destinations. */
function read(destinations: Readonly<Record<string, readonly string[]>>): ParsedCatalog {
  const lines = Object.entries(destinations).flatMap(([id, own]) => [
    `  - id: ${id}`,
    ...own.map((line) => `    ${line}`),
  ])
  const text = ['sources: [{ id: shop }, { id: sluice }]', 'destinations:', ...lines].join('\n')
  return parseCatalog(text, { file: 'catalog.yaml' })
}

function catalogOf(destinations: Parameters<typeof read>[0]): Catalog {
  const parsed = read(destinations)
  if (!parsed.ok) throw new Error(parsed.faults.map(formatFault).join('\n'))
  return parsed.catalog
}

function destinationOf(...lines: readonly string[]): Destination {
  const own = ['sources: [shop]', `hooks: [{ url: ${hook} }]`, ...lines]
  const destination = catalogOf({ crm: own }).destinations.get('crm')
  if (destination === undefined) throw new Error('no destination')
  return destination
}

describe('the time after which a destination is paused', () => {
  const terms = { autoPauseMs: 1_000, noticesSource: 'sluice' }

  test.each([
    [[], 1_000],
    [['autoPause: 120h'], 432_000_000],
    [['autoPause: off'], 0],
  ])('with %o is %i ms', (lines, ms) => {
    expect(autoPauseMsOf(destinationOf(...lines), terms)).toBe(ms)
  })

  test('is none where the destination gets the notices', () => {
    const own = ['sources: [shop, sluice]', `hooks: [{ url: ${hook} }]`, 'autoPause: 120h']
    const ops = catalogOf({ ops: own }).destinations.get('ops')
    expect(ops && autoPauseMsOf(ops, terms)).toBe(0)
  })

  test.each([
    [
      'autoPause: 5 days',
      'is not written as it has to be; write it so: the time for which all URLs must fail',
    ],
    ['autoPause: 5', 'must be text, and is'],
    ['autoPause: 500ms', 'is out of range; write off, or a duration from 1s to 2160h, such as 120h'],
    ['autoPause: 9000h', 'is out of range; write off, or a duration from 1s to 2160h, such as 120h'],
  ])('is refused: %s', (line, fault) => {
    const parsed = read({ crm: ['sources: [shop]', `hooks: [{ url: ${hook} }]`, line] })
    const faults = parsed.ok ? [] : parsed.faults.map(formatFault)
    expect(faults).toHaveLength(1)
    expect(faults[0]).toContain(`destinations[0].autoPause: ${fault}`)
  })
})

function stateOf({ id, state }: Destination): readonly string[] {
  return [id, state]
}

function withPaused(catalog: Catalog, isPaused: (destination: Destination) => boolean): Catalog {
  return withChangedSince(undefined, catalog, (destination) =>
    restrained(destination, { isPaused: isPaused(destination), goneHooks: [] }),
  )
}

describe('the catalog in which destinations are paused', () => {
  const on = ['sources: [shop]', `hooks: [{ url: ${hook} }]`]
  const catalog = catalogOf({ crm: on, erp: on, away: [...on, 'state: off'], rest: [...on, 'state: paused'] })

  test('is the same object where none is', () => {
    expect(withPaused(catalog, () => false)).toBe(catalog)
    expect(withPaused(catalog, ({ id }) => id === 'away' || id === 'rest')).toBe(catalog)
  })

  test('has all else as it was, and what the catalog has off or paused too', () => {
    const paused = withPaused(catalog, ({ id }) => id !== 'erp')
    const states = [
      ['crm', 'auto_paused'],
      ['erp', 'on'],
      ['away', 'off'],
      ['rest', 'paused'],
    ]
    expect([...paused.destinations.values()].map(stateOf)).toEqual(states)
    expect(paused.destinationsBySource.get('shop')?.map(stateOf)).toEqual(states)
    expect(paused.destinations.get('erp')).toBe(catalog.destinations.get('erp'))
    expect(paused.version).toBe(catalog.version)
  })
})

function digestOf(hooks: string, ...more: readonly string[]): string | undefined {
  const crm = catalogOf({ crm: ['sources: [shop]', `hooks: [${hooks}]`, ...more] }).destinations.get('crm')
  return crm && urlsDigestOf(crm)
}

test('the digest of the URLs differs when a URL does, and not by their order or anything else', () => {
  const [one, two] = ['{ url: http://a.example }', '{ url: http://b.example }']
  expect(digestOf(`${one}, ${two}`)).toBe(digestOf(`${two}, ${one}`, 'maxInFlight: 1'))
  expect(digestOf(one)).not.toBe(digestOf(two))
  expect(digestOf(one)).not.toBe(digestOf(`${one}, ${two}`))
})

test('if a catalog was made from the earlier one, only the destinations in which they differ are changed', () => {
  const lines = ['sources: [shop]', `hooks: [{ url: ${hook} }]`]
  const before = catalogOf({ a: lines, b: lines, c: lines })
  const asked: string[] = []
  const pauseA = (destination: Destination): Destination => {
    asked.push(destination.id)
    return destination.id === 'a' ? { ...destination, state: 'auto_paused' } : destination
  }
  const earlier = { read: before, catalog: withChangedSince(undefined, before, pauseA) }
  expect(asked.splice(0)).toEqual(['a', 'b', 'c'])
  const other = catalogOf({ b: lines }).destinations.get('b')
  const next = nextCatalog(
    before,
    {
      sources: new Map(),
      destinations: new Map([
        ['b', other],
        ['c', undefined],
      ]),
    },
    '2',
  )
  const now = withChangedSince(earlier, next, pauseA)
  expect(asked).toEqual(['b'])
  expect([...now.destinations.values()].map(({ id, state }) => [id, state])).toEqual([
    ['a', 'auto_paused'],
    ['b', 'on'],
  ])
  expect(now.destinations.get('b')).toBe(other)
  expect([...changedDestinations(earlier.catalog, now)]).toEqual(['b', 'c'])
  // What nobody restrains is the catalog itself.
  const untouched = { read: before, catalog: before }
  expect(withChangedSince(untouched, next, (destination) => destination)).toBe(next)
})
