import type { LogPiece } from '../kafka/read/partition-reader.ts'
import type { WholeRecord } from '../message/records.ts'

/** Consecutive records of one unit's log, all from the offset `from` on. */
export type Piece = LogPiece & { readonly from: number; readonly unit: number; readonly bytes: number }

/**
 * The pieces of `waiting` that were fetched last. The records of one destination lie between those of others,
 * so a piece serves many destinations, one after another. The pieces that were used longest ago are dropped.
 */
export class Pieces {
  readonly #maxBytes: number
  /** In the order of their last use. */
  readonly #pieces = new Set<Piece>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Returns the piece that covers the offset, if it is kept. */
  find(unit: number, offset: number): Piece | undefined {
    for (const piece of this.#pieces) {
      if (piece.unit !== unit || offset < piece.from || offset >= piece.next) continue
      this.#pieces.delete(piece)
      this.#pieces.add(piece)
      return piece
    }
    return undefined
  }

  /** Keeps a piece that was fetched from `asked`. It may begin before that, with its first batch. */
  add(unit: number, asked: number, { records, next }: LogPiece): Piece {
    const from = Math.min(asked, records[0]?.offset ?? asked)
    const bytes = records.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + (value?.length ?? 0), 0)
    const piece: Piece = { unit, from, records, next, bytes }
    this.#pieces.add(piece)
    this.#bytes += bytes
    for (const oldest of this.#pieces) {
      if (this.#bytes <= this.#maxBytes || oldest === piece) break
      this.#drop(oldest)
    }
    return piece
  }

  /** Drops the pieces of a unit before `offset`, because nobody reads them again. */
  dropBefore(unit: number, offset: number): void {
    for (const piece of this.#pieces) if (piece.unit === unit && piece.next <= offset) this.#drop(piece)
  }

  dropAll(unit: number): void {
    this.dropBefore(unit, Infinity)
  }

  #drop(piece: Piece): void {
    this.#pieces.delete(piece)
    this.#bytes -= piece.bytes
  }
}

/** Returns the record at an offset. `records` are in the order of their offsets. */
export function recordAt(records: readonly WholeRecord[], offset: number): WholeRecord | undefined {
  let [low, high] = [0, records.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((records[middle]?.offset ?? Infinity) < offset) low = middle + 1
    else high = middle
  }
  return records[low]?.offset === offset ? records[low] : undefined
}
