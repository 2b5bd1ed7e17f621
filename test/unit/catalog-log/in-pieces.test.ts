import { expect, test } from 'vitest'
import { cheapSteps, type Pieces } from '../../../src/async/pieces.ts'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { comparingNamed } from '../../../src/catalog/changes.ts'
import { makingNext } from '../../../src/catalog/next-catalog.ts'
import { parseCatalogData } from '../../../src/catalog/parse.ts'
import { CatalogLog } from '../../../src/catalog-log/log.ts'
import { RecordSeals } from '../../../src/catalog-log/record.ts'
import { catalogKeys } from '../../support/catalog-log.ts'

/** A change of many objects must not hold up the deliveries of a process. */

const many = 5_000
const ids = Array.from({ length: many }, (_, index) => `d${index}`)

/** Does a work, and looks after each of its pieces. Returns how many there are. */
function piecesOf<T>(work: Pieces<T>, look: () => void = () => undefined): { pieces: number; made: T } {
  for (let pieces = 1; ; pieces++) {
    const step = work.next()
    if (step.done === true) return { pieces, made: step.value }
    look()
  }
}

function catalogOf(perSecond: number) {
  const destinations = ids.map((id) => {
    const hooks = [{ url: `https://${id}.example.com` }]
    return { id, sources: ['shop'], rateLimit: { perSecond }, hooks }
  })
  const read = parseCatalogData({ sources: [{ id: 'shop' }], destinations }, { file: 'all', version: 'r1' })
  if (!read.ok) throw new Error('the catalog has faults')
  return read.catalog
}

test('a large change set is taken in pieces, and takes effect at once in the last one', () => {
  const seals = new RecordSeals('test', catalogKeys())
  const log = new CatalogLog(seals, ({ problem }) => {
    throw new Error(problem)
  })
  const counts = { source: 0, destination: many }
  const written = [
    ...ids.map((id) => seals.write(`destination/${id}`, { id }, 1)),
    seals.head({ revision: 1, changeId: 'c', atMs: 1, by: 'ann', counts }),
  ]
  const records = written.map(({ key, value, headers = {} }, offset) => ({
    offset,
    key: Buffer.from(String(key)),
    value: Buffer.from(String(value)),
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, text]) => [name, Buffer.from(String(text))]),
    ),
    timestampMs: 0,
  }))
  for (const record of records.slice(0, -1)) log.take(record)
  const [head] = records.slice(-1)
  if (head === undefined) throw new Error('there is no head')
  const { pieces, made } = piecesOf(log.taking(head), () => {
    expect(log.all.size).toBe(0)
    expect(log.head).toBeUndefined()
  })
  expect(pieces).toBeGreaterThanOrEqual(many / cheapSteps)
  expect(made?.put).toHaveLength(many)
  expect(log.all.size).toBe(many)
  expect(log.damage).toBeUndefined()
})

test('the catalog of a large change set is made and compared in pieces', () => {
  const [empty, all, edited] = [createCatalog([], [], 'r0'), catalogOf(1), catalogOf(2)]
  const next = (before: typeof all, { sources, destinations }: typeof all) =>
    piecesOf(makingNext(before, { sources, destinations }, 'r2'))
  const first = next(empty, all)
  // In the map, by source, and in the list of the source.
  expect(first.pieces).toBeGreaterThanOrEqual((2 * many) / cheapSteps)
  const second = next(first.made, edited)
  expect(second.pieces).toBeGreaterThanOrEqual((3 * many) / cheapSteps)
  expect([...second.made.destinations.values()]).toEqual([...edited.destinations.values()])
  expect(second.made.destinationsBySource.get('shop')).toEqual([...edited.destinations.values()])

  const names = { sources: new Set<string>(), destinations: new Set(ids) }
  const compared = piecesOf(comparingNamed(first.made, second.made, names))
  expect(compared.pieces).toBeGreaterThanOrEqual(many / cheapSteps)
  expect(compared.made.destinations?.slice(-2)).toEqual(['d49: rateLimit', `and ${many - 50} more`])
})
