import type { PartitionReader } from '../kafka/read/partition-reader.ts'
import { blockSize, placesOf } from './block.ts'
import { decodeDone, decodeOwners, type OwnersMark, parseMarkKey } from './marks.ts'
import type { Owners } from './owners.ts'

/** The keys of marks that the log of marks has, by the block that they describe. */
export type MarkKeys = Map<number, Set<string>>

/** The block under which the keys stand that belong to another log, or can't be read. */
export const noBlock = -1

/** The marks of the earlier owners of a unit. */
export type LoadedMarks = {
  readonly owners: ReadonlyMap<number, OwnersMark>
  readonly keys: MarkKeys
  /** The highest offset that is done; -1 if none is. */
  readonly lastDone: number
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
  readonly reader: Pick<PartitionReader, 'read'>
  readonly topic: string
  readonly unit: number
  readonly topicId: string
  readonly owners: Owners
  readonly signal: AbortSignal
}): Promise<LoadedMarks> {
  const latest = new Map<string, Buffer>()
  for await (const records of reader.read({ topic, partition: unit, from: 0, signal })) {
    for (const { key, value } of records) {
      if (value === null) latest.delete(key.toString())
      else latest.set(key.toString(), Buffer.from(value))
    }
  }
  const ownersOf = new Map<number, OwnersMark>()
  const done = new Map<number, Buffer[]>()
  const keys: MarkKeys = new Map()
  for (const [text, value] of latest) {
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
    if (bits !== undefined) done.set(key.block, [...(done.get(key.block) ?? []), bits])
  }
  return { owners: ownersOf, keys, ...readDone(done), undoneBetween: undoneIn(ownersOf, done) }
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
