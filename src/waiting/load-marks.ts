import type { PartitionReader } from '../kafka/read/partition-reader.ts'
import { headerText } from '../message/record-headers.ts'
import { blockSize, placesOf } from './block.ts'
import type { ToldFences } from './fences.ts'
import {
  decodeDone,
  decodeOwners,
  fencesHeader,
  lastDoneHeader,
  type OwnersMark,
  parseFences,
  parseMarkKey,
  parsePlace,
  type PlaceInLog,
} from './marks.ts'
import type { Owners } from './owners.ts'
import { tenureOf } from './tenure.ts'

/** The keys of marks that the log of marks has, by the block that they describe. */
export type MarkKeys = Map<number, Set<string>>

/** The block under which the keys stand that belong to another log, or can't be read. */
export const noBlock = -1

type Read = {
  readonly value: Buffer
  readonly place: PlaceInLog | undefined
  readonly fences: ReadonlyMap<string, number>
}

/** The marks of the earlier owners of a unit. */
export type LoadedMarks = {
  readonly owners: ReadonlyMap<number, OwnersMark>
  readonly keys: MarkKeys
  /** The highest offset that is done; -1 if none is. */
  readonly lastDone: number
  /** The highest record that a mark names with the epoch of its leader. */
  readonly lastPlace: PlaceInLog | undefined
  /** The offsets of the records that are void. */
  readonly void: ReadonlySet<number>
  readonly fences: readonly ToldFences[]
  /** Yields the offsets from `from` on that are done. */
  doneFrom(from: number): Iterable<number>
  /** Returns how many offsets from `from` to `to` are known to have records that are not done. */
  undoneBetween(from: number, to: number): number
}

/** Reads the marks of a unit. Only the marks of the log with `topicId` count. */
export async function loadMarks({
  reader,
  topic,
  unit,
  topicId,
  owners,
  signal,
}: {
  readonly reader: Pick<PartitionReader, 'readWhole'>
  readonly topic: string
  readonly unit: number
  readonly topicId: string
  readonly owners: Owners
  readonly signal: AbortSignal
}): Promise<LoadedMarks> {
  const latest = await readLatest(reader, { topic, partition: unit, signal })
  const ownersOf = new Map<number, OwnersMark>()
  const done = new Map<number, Buffer[]>()
  const voids = new Set<number>()
  const told: ToldFences[] = []
  const keys: MarkKeys = new Map()
  let lastPlace: PlaceInLog | undefined
  for (const [text, { value, place, fences }] of latest) {
    const key = parseMarkKey(text)
    const isOurs = key !== undefined && key.topicId === topicId
    keysOf(keys, isOurs ? key.block : noBlock).add(text)
    if (!isOurs) continue
    if (key.kind === 'owners') {
      const mark = decodeOwners(value, owners)
      if (mark !== undefined) ownersOf.set(key.block, mark)
      continue
    }
    const bits = decodeDone(value)
    if (bits === undefined) continue
    if (key.kind === 'void') {
      for (const at of placesOf(bits)) voids.add(key.block * blockSize + at)
      continue
    }
    const by = tenureOf(key.writer)
    if (by !== undefined && fences.size > 0) told.push({ by, fences })
    done.set(key.block, [...(done.get(key.block) ?? []), bits])
    if (place !== undefined && place.offset >= (lastPlace?.offset ?? 0)) lastPlace = place
  }
  return {
    owners: ownersOf,
    keys,
    lastPlace,
    void: voids,
    fences: told,
    ...readDone(done),
    undoneBetween: undoneIn(ownersOf, done),
  }
}

/** Reads the last value of each key. */
async function readLatest(
  reader: Pick<PartitionReader, 'readWhole'>,
  where: { readonly topic: string; readonly partition: number; readonly signal: AbortSignal },
): Promise<ReadonlyMap<string, Read>> {
  const latest = new Map<string, Read>()
  for await (const records of reader.readWhole({ ...where, from: 0 })) {
    for (const { key, value, headers } of records) {
      if (key === null) continue
      if (value === null) latest.delete(key.toString())
      else
        latest.set(key.toString(), {
          value: Buffer.from(value),
          place: parsePlace(headerText(headers, lastDoneHeader)),
          fences: parseFences(headerText(headers, fencesHeader)),
        })
    }
  }
  return latest
}

/**
 * Returns the first offset at which the log of a unit may have other records than it had when its marks were
 * written. Infinity if it still has the record `place` that they name, or if they name none.
 */
export async function otherFrom(
  reader: Pick<PartitionReader, 'divergesAt'>,
  where: { readonly topic: string; readonly partition: number; readonly signal?: AbortSignal },
  place: PlaceInLog | undefined,
): Promise<number> {
  if (place === undefined) return Infinity
  const { offset, leaderEpoch } = place
  return (await reader.divergesAt({ ...where, offset: offset + 1, leaderEpoch })) ?? Infinity
}

type Bitmaps = ReadonlyMap<number, readonly Buffer[]>

function readDone(done: Bitmaps): Pick<LoadedMarks, 'lastDone' | 'doneFrom'> {
  const lastBlock = Math.max(-1, ...done.keys())
  const lastPlaces = (done.get(lastBlock) ?? []).flatMap((bits) => [...placesOf(bits)])
  return {
    lastDone: Math.max(-1, ...lastPlaces.map((place) => lastBlock * blockSize + place)),
    *doneFrom(from) {
      for (const [block, bitmaps] of done)
        for (const bits of bitmaps)
          for (const place of placesOf(bits))
            if (block * blockSize + place >= from) yield block * blockSize + place
    },
  }
}

function undoneIn(owners: ReadonlyMap<number, OwnersMark>, done: Bitmaps): LoadedMarks['undoneBetween'] {
  return (from, to) => {
    let undone = 0
    for (const [block, { runs }] of owners) {
      const places = new Set((done.get(block) ?? []).flatMap((bits) => [...placesOf(bits)]))
      let place = 0
      for (const [code, length] of runs) {
        for (const end = place + length; place < end; place++) {
          const offset = block * blockSize + place
          if (code > 0 && offset >= from && offset < to && !places.has(place)) undone++
        }
      }
    }
    return undone
  }
}

/** Returns the keys of a block. They can be added to. */
export function keysOf(keys: MarkKeys, block: number): Set<string> {
  let found = keys.get(block)
  if (found === undefined) {
    found = new Set()
    keys.set(block, found)
  }
  return found
}
