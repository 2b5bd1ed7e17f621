import { Breath } from '../../src/async/breath.ts'
import { withChangedSince } from '../../src/catalog/auto-pause.ts'
import type { Catalog, Destination } from '../../src/catalog/catalog.ts'
import { changedDestinations, stateCountsOf } from '../../src/catalog/next-catalog.ts'
import { Definitions } from '../../src/catalog-log/definitions.ts'
import { Entries, pieceMs } from '../../src/catalog-log/entries.ts'
import { newKeyLine, readKeys } from '../../src/catalog-log/keys.ts'
import { CatalogLog, type ChangeSet } from '../../src/catalog-log/log.ts'
import { RecordSeals } from '../../src/catalog-log/record.ts'
import type { WholeRecord, WrittenRecord } from '../../src/message/records.ts'
import { givenAnotherChance } from '../../src/recall/edited-destinations.ts'
import { differenceOf, firstSets } from '../../src/roles/catalog/change-sets.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { heapBytes } from '../support/heap.ts'
import { longestTurnMs } from './longest-turn.ts'

export type Loaded = {
  /** The CPU time from the records of the topic to the catalog, in seconds. */
  readonly cpuS: number
  /** What the process keeps of a destination, in bytes. */
  readonly bytesEach: number
  /** The CPU time of a change of one destination, from its records to the catalog, in milliseconds. */
  readonly changeCpuMs: number
  /** The CPU time of the longest piece of work in a burst of changes, in milliseconds. */
  readonly pieceCpuMs: number
}

const installation = 'bench'
const changes = 50
const burst = 10_000

/** Loads a catalog from the records of its topic, and then changes one destination after the other. */
export async function loadCatalog(destinations: number): Promise<Loaded> {
  const read = readKeys(newKeyLine())
  if (!read.ok) throw new BenchmarkFailure(read.problem)
  const { keys } = read
  const seals = new RecordSeals(installation, keys)
  const definitions = new Definitions(installation, keys)
  const records = recordsOf(destinations, seals, definitions)

  const before = heapBytes()
  const startedUs = cpuUs()
  const log = new CatalogLog(seals, refuse)
  for (const record of records) log.take(record)
  const entries = new Entries({ definitions, topic: installation, onUnusable: refuse })
  let catalog: Catalog = entries.all(log)
  const cpuS = (cpuUs() - startedUs) / 1e6
  const bytesEach = (heapBytes() - before) / destinations

  let offset = records.length
  const changing = Array.from({ length: changes }, (_, index) => {
    const revision = 2 + index
    const written = [
      destinationRecord(`d${index}`, revision, seals, definitions),
      seals.head({
        revision,
        changeId: 'c',
        atMs: 0,
        by: 'b',
        counts: { source: 1, destination: destinations },
      }),
    ]
    return written.map((record) => wholeOf(record, offset++))
  })
  // What a worker does with each catalog: it leaves out what is paused, counts, and looks what was edited.
  let inForce = withChangedSince(undefined, catalog, keep)
  stateCountsOf(inForce)
  const changedUs = cpuUs()
  for (const pair of changing)
    for (const record of pair) {
      const set = log.take(record)
      if (set === undefined) continue
      const earlier = { read: catalog, catalog: inForce }
      catalog = await entries.next(catalog, [set])
      inForce = withChangedSince(earlier, catalog, keep)
      stateCountsOf(inForce)
      const ids = changedDestinations(earlier.catalog, inForce)
      givenAnotherChance(earlier.catalog.destinations, inForce.destinations, ids)
    }
  if (catalog.destinations.size !== destinations) throw new BenchmarkFailure('a destination is missing')
  const changeCpuMs = (cpuUs() - changedUs) / 1e3 / changes

  const given = { log, entries, seals, definitions, offset, revision: 1 + changes }
  const pieceCpuMs = await longestPieceMs(given, catalog, inForce)
  return { cpuS, bytesEach, changeCpuMs, pieceCpuMs }
}

type Following = {
  readonly log: CatalogLog
  readonly entries: Entries
  readonly seals: RecordSeals
  readonly definitions: Definitions
  /** The offset of the next record, and the last revision. */
  readonly offset: number
  readonly revision: number
}

/** Makes the catalogs of a burst of changes, with what a worker does with each. */
async function longestPieceMs(
  { log, entries, seals, definitions, offset, revision: last }: Following,
  catalog: Catalog,
  changed: Catalog,
): Promise<number> {
  const { size } = catalog.destinations
  const sets = Array.from({ length: burst }, (_, index): readonly ChangeSet[] => {
    const revision = last + 1 + index
    const counts = { source: 1, destination: size + index + 1 }
    const head = seals.head({ revision, changeId: 'c', atMs: 0, by: 'b', counts })
    const records = [destinationRecord(`burst${index}`, revision, seals, definitions), head]
    return records.flatMap((record, at) => log.take(wholeOf(record, offset + 2 * index + at)) ?? [])
  }).flat()
  let [read, inForce] = [catalog, changed]
  return longestTurnMs(async () => {
    const breath = new Breath(pieceMs)
    for (let from = 0; from < sets.length;) {
      const some = firstSets(sets, from)
      from += some.length
      const earlier = { read, catalog: inForce }
      read = await entries.next(read, some, breath)
      await breath.take()
      await differenceOf(earlier.read, read, some, breath)
      await breath.take()
      inForce = withChangedSince(earlier, read, keep)
      stateCountsOf(inForce)
      const ids = changedDestinations(earlier.catalog, inForce)
      givenAnotherChance(earlier.catalog.destinations, inForce.destinations, ids)
      await breath.take()
    }
  })
}

function refuse(problem: unknown): never {
  throw new BenchmarkFailure(`a record is refused: ${JSON.stringify(problem)}`)
}

function keep(destination: Destination): Destination {
  return destination
}

function recordsOf(count: number, seals: RecordSeals, definitions: Definitions): readonly WholeRecord[] {
  const written = [
    seals.write('source/shop', { id: 'shop' }, 1),
    ...Array.from({ length: count }, (_, index) => destinationRecord(`d${index}`, 1, seals, definitions)),
    seals.head({ revision: 1, changeId: 'c', atMs: 0, by: 'b', counts: { source: 1, destination: count } }),
  ]
  return written.map(wholeOf)
}

/** Returns the record of a destination with a secret and a header, as most have them. */
function destinationRecord(
  id: string,
  revision: number,
  seals: RecordSeals,
  definitions: Definitions,
): WrittenRecord {
  const plain = {
    id,
    sources: ['shop'],
    sharedSecret: `whsec-of-${id}-${revision}`,
    hooks: [{ url: `https://${id}.example.com/hook`, headers: { Authorization: `Bearer ${id}` } }],
  }
  const name = { kind: 'destination', id } as const
  return seals.write(
    `destination/${id}`,
    definitions.stored(name, plain, { earlier: undefined, atMs: 0 }),
    revision,
  )
}

function wholeOf({ key, value, headers = {} }: WrittenRecord, offset: number): WholeRecord {
  const texts = Object.entries(headers).map(([name, text]) => [name, Buffer.from(String(text))] as const)
  return {
    offset,
    key: Buffer.from(String(key)),
    value: value === null ? null : Buffer.from(String(value)),
    headers: Object.fromEntries(texts),
    timestampMs: 0,
  }
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}
