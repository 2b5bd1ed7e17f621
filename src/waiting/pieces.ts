import type { LogPiece } from '../kafka/read/partition-reader.ts'
import type { WholeRecord } from '../message/records.ts'
import { PackedRecords, Segments } from './packed-records.ts'

/** Consecutive records of one unit's log, all from the offset `from` on, and before `next`. */
export type Piece = Pick<LogPiece, 'next'> & {
  readonly from: number
  readonly unit: number
  readonly records: PackedRecords
  /** In how many parts of `partBytes` it has come, and those of which records were delivered. */
  readonly parts: number
  readonly used: Set<number>
  /** True once it was dropped. Its records must not be read any more. */
  isDropped: boolean
}

/**
 * The most and the fewest bytes that a fetch should bring. Destinations that have waited for equally long
 * read the log at about the same place, so most of what comes with a record is needed soon. If they have
 * waited for different times, what comes with a record is dropped before its turn.
 */
const fetchBytes = { most: 512 * 1024, least: 32 * 1024 }
/** A part of a fetch, in bytes. Less isn't worth a fetch of its own. */
const partBytes = 16 * 1024
/**
 * If no more of the parts of a piece were used than the first, the fetches become smaller; if more than the
 * second, larger. Of a part that was used, one record counts as much as all: a smaller fetch brings it too.
 */
const usedParts = { few: 1 / 4, many: 1 / 2 }

/**
 * The pieces of `waiting` that were fetched last. The records of one destination lie between those of others,
 * so a piece serves many destinations, one after another. The pieces that were used longest ago are dropped.
 */
export class Pieces {
  readonly #maxBytes: number
  /** In the order of their last use. */
  readonly #pieces = new Set<Piece>()
  readonly #ofUnits = new Map<number, Set<Piece>>()
  readonly #segments = new Segments()
  #bytes = 0
  #fetchBytes = fetchBytes.most

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The bytes that the next fetch should bring. */
  get fetchBytes(): number {
    return this.#fetchBytes
  }

  /**
   * Returns from where to fetch a record: from the end of a piece that ends shortly before it. What lies
   * between them is needed soon too, unless little of a fetch is used.
   */
  startFor(unit: number, offset: number): number {
    let start = -1
    if (this.#fetchBytes === fetchBytes.most)
      for (const { from, next } of this.#ofUnits.get(unit) ?? [])
        if (next <= offset && offset - next < (next - from) / 2) start = Math.max(start, next)
    return start < 0 ? offset : start
  }

  /** Returns the piece that covers the offset, if it is kept. */
  find(unit: number, offset: number): Piece | undefined {
    for (const piece of this.#ofUnits.get(unit) ?? []) {
      if (offset < piece.from || offset >= piece.next) continue
      this.#pieces.delete(piece)
      this.#pieces.add(piece)
      return piece
    }
    return undefined
  }

  /** Keeps a piece that was fetched from `asked`. It may begin before that, with its first batch. */
  add(unit: number, asked: number, { records, next }: LogPiece): Piece {
    const from = Math.min(asked, records[0]?.offset ?? asked)
    const packed = new PackedRecords(records, this.#segments)
    const parts = Math.min(
      this.#fetchBytes / partBytes,
      Math.ceil(packed.contentBytes / partBytes),
      records.length,
    )
    const piece: Piece = { unit, from, records: packed, next, parts, used: new Set(), isDropped: false }
    this.#pieces.add(piece)
    this.#ofUnit(unit).add(piece)
    this.#bytes += packed.bytes
    for (const oldest of this.#pieces) {
      if (this.#bytes <= this.#maxBytes || oldest === piece) break
      this.#learnFrom(oldest)
      this.#drop(oldest)
    }
    return piece
  }

  /** Drops the pieces of a unit before `offset`, because nobody reads them again. */
  dropBefore(unit: number, offset: number): void {
    for (const piece of this.#ofUnits.get(unit) ?? []) {
      if (piece.next > offset) continue
      this.#learnFrom(piece)
      this.#drop(piece)
    }
  }

  /** Drops all pieces of a unit. That its owner has changed says nothing about its pieces. */
  dropAll(unit: number): void {
    for (const piece of this.#ofUnits.get(unit) ?? []) this.#drop(piece)
    this.#ofUnits.delete(unit)
  }

  /** Learns from a piece that is dropped how many bytes a fetch should bring. */
  #learnFrom({ records, parts, used }: Piece): void {
    if (records.count === 0) return
    const part = used.size / parts
    if (part > usedParts.many) this.#fetchBytes = Math.min(fetchBytes.most, this.#fetchBytes * 2)
    else if (part <= usedParts.few) this.#fetchBytes = Math.max(fetchBytes.least, this.#fetchBytes / 2)
  }

  #ofUnit(unit: number): Set<Piece> {
    let pieces = this.#ofUnits.get(unit)
    if (pieces === undefined) this.#ofUnits.set(unit, (pieces = new Set()))
    return pieces
  }

  #drop(piece: Piece): void {
    this.#pieces.delete(piece)
    this.#ofUnits.get(piece.unit)?.delete(piece)
    this.#bytes -= piece.records.bytes
    piece.isDropped = true
    piece.records.release()
  }
}

/** Returns a copy of the record of a piece at an offset, which is delivered from it. */
export function take({ records, parts, used }: Piece, offset: number): WholeRecord | undefined {
  const place = records.placeOf(offset)
  if (place < 0) return undefined
  used.add(Math.floor((place * parts) / records.count))
  return records.read(place)
}
