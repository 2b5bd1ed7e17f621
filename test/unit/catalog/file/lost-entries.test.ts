import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Catalog } from '../../../../src/catalog/catalog.ts'
import { formatFault } from '../../../../src/catalog/fault.ts'
import { type CatalogFile, openCatalogFile } from '../../../../src/catalog/file/file.ts'
import type { KnownCatalog } from '../../../../src/catalog/file/lost-entries.ts'
import { outlineOf } from '../../../../src/catalog/outline.ts'
import { until } from '../../../support/until.ts'

/** Tests of a catalog file that lacks many entries of the earlier catalog, as one that was cut off does. */

let folder: string
let path: string
let taken: Catalog[]
let refusals: string[]
const opened: CatalogFile[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-catalog-'))
  path = join(folder, 'catalog.yaml')
  taken = []
  refusals = []
})

afterEach(async () => {
  for (const file of opened.splice(0)) file.stop()
  await rm(folder, { recursive: true })
})

function ids(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

/** A catalog in which each entry has three lines, as the file of an installation has. */
function textOf(destinations: number, { sources = 1, expect: expected = '' } = {}): string {
  return [
    ...(expected === '' ? [] : [`expect: ${expected}`]),
    'sources:',
    ...ids(sources).map((index) => `  - id: shop-${index}`),
    'destinations:',
    ...ids(destinations).flatMap((index) => [
      `  - id: customer-${index}`,
      '    sources: [shop-0]',
      `    hooks: [{ url: https://example.com/${index} }]`,
    ]),
    '',
  ].join('\n')
}

/** Returns the first lines of a text, as `head -n` does. */
function head(text: string, lines: number): string {
  return text.split('\n').slice(0, lines).join('\n')
}

async function edit(text: string): Promise<void> {
  await writeFile(`${path}.new`, text)
  await rename(`${path}.new`, path)
}

async function open(text: string, known?: KnownCatalog) {
  await edit(text)
  const result = await openCatalogFile({
    path,
    known,
    everyMs: 10,
    settleMs: 10,
    onChange: (catalog) => taken.push(catalog),
    onRefused: (faults) => refusals.push(...faults.map(formatFault)),
  })
  if (result.ok) opened.push(result.file)
  return result
}

async function follow(text: string): Promise<CatalogFile> {
  const result = await open(text)
  if (!result.ok) throw new Error(result.message)
  return result.file
}

async function knownOf(text: string): Promise<KnownCatalog> {
  const outline = outlineOf((await follow(text)).current())
  return { outline, of: 'the catalog that was last in force here', ifAnother: '' }
}

test('a file that was cut off after half of its destinations is refused with their names, and changes nothing', async () => {
  const whole = textOf(10)
  const file = await follow(whole)
  const before = file.current()
  await edit(head(whole, 3 + 5 * 3))
  await until('the edit is refused', () => refusals.length > 0)
  expect(refusals).toEqual([
    `${path}: destinations: lacks 5 of the 10 destinations of the catalog in force: customer-5, customer-6, customer-7, customer-8, customer-9; restore the whole file; if they are to be removed, write expect: { destinations: 5 } into it`,
  ])
  expect(file.refused()?.faults).toHaveLength(1)
  expect(file.current()).toBe(before)

  await edit(textOf(5, { expect: '{ destinations: 5 }' }))
  await until('the file that says so itself is in force', () => file.current().destinations.size === 5)
  expect(file.refused()).toBeUndefined()
})

test('a file that has lost more than a tenth of its sources is refused, whatever it says about its destinations', async () => {
  const file = await follow(textOf(3, { sources: 5 }))
  await edit(textOf(3, { sources: 3, expect: '{ destinations: 3 }' }))
  await until('the edit is refused', () => refusals.length > 0)
  expect(refusals[0]).toContain('lacks 2 of the 5 sources of the catalog in force: shop-3, shop-4; ')
  expect(refusals[0]).toContain('write expect: { sources: 3 } into it')
  await edit(textOf(3, { sources: 3, expect: '{ sources: 3 }' }))
  await until('the file that says so itself is in force', () => file.current().sources.size === 3)
})

test.each([
  ['one of one', 1, 0, true],
  ['one of three', 3, 2, true],
  ['two of twenty, which is a tenth', 20, 18, true],
  ['three of twenty', 20, 17, false],
  ['two of ten', 10, 8, false],
])('a file that has lost %s is taken: %4$s', async (_, before, after, isTaken) => {
  await follow(textOf(before))
  await edit(textOf(after).replace('destinations:\n', after === 0 ? 'destinations: []\n' : 'destinations:\n'))
  await until('it is judged', () => taken.length + refusals.length > 0)
  expect(taken.length > 0).toBe(isTaken)
})

test('destinations that have other ids count as lost, however many there are', async () => {
  await follow(textOf(10))
  await edit(textOf(10).replaceAll('customer-', 'client-'))
  await until('the edit is refused', () => refusals.length > 0)
  expect(refusals[0]).toContain('lacks 10 of the 10 destinations')
})

test.each([
  ['an empty file', '', 'the catalog is empty; '],
  ['a file with a comment only', '# to be written\n', 'the catalog is empty; '],
  ['{}', '{}', 'the catalog is empty; '],
  ['null', 'null\n', 'the catalog is empty; '],
  [
    'a catalog without any entry',
    'sources: []\ndestinations: []\n',
    'lacks 1 of the 1 sources of the catalog in force',
  ],
])('%s is refused in place of even the smallest catalog', async (_, text, said) => {
  const file = await follow(textOf(1))
  await edit(text)
  await until('the edit is refused', () => refusals.length > 0)
  expect(refusals.join('\n')).toContain(said)
  expect(file.current().destinations.size).toBe(1)
})

test('a catalog without any entry is taken if it says so', async () => {
  const file = await follow(textOf(2))
  await edit('expect: { destinations: 0, sources: 0 }\nsources: []\ndestinations: []\n')
  await until('it is in force', () => file.current().sources.size === 0)
  expect(refusals).toEqual([])
})

test('a start is compared with the catalog that was last in force', async () => {
  const known = await knownOf(textOf(10))
  const refused = await open(textOf(5), known)
  expect(refused).toMatchObject({
    ok: false,
    message: expect.stringContaining(
      'lacks 5 of the 10 destinations of the catalog that was last in force here: customer-5, ',
    ),
  })
  expect(await open(textOf(5, { expect: '{ destinations: 5 }' }), known)).toMatchObject({ ok: true })
  expect(await open(textOf(9), known)).toMatchObject({ ok: true })
})

test('a file that has not as many entries as it says is refused, also if nothing is known of an earlier one', async () => {
  const text = textOf(10, { expect: '{ destinations: 10, sources: 1 }' })
  expect(await open(text)).toMatchObject({ ok: true })
  expect(await open(head(text, 4 + 9 * 3))).toMatchObject({
    ok: false,
    faults: [
      {
        path: 'expect.destinations',
        line: 1,
        problem: 'is 10, and the file has 9 destinations',
        advice: 'restore the whole file, or write 9',
      },
    ],
  })
})

test('a large file that a thread reads is compared too, and its faults name a few of the lost', async () => {
  const file = await follow(textOf(2_000))
  await edit(textOf(1_000))
  await until('the edit is refused', () => refusals.length > 0)
  expect(refusals[0]).toMatch(/lacks 1000 of the 2000 destinations .*: customer-1000, .*, and 980 more; /)
  expect((refusals[0] ?? '').length).toBeLessThan(1_000)
  await edit(textOf(1_000, { expect: '{ destinations: 1000 }' }))
  await until('it is in force', () => file.current().destinations.size === 1_000)
})
