import { KeyFilter } from './key-filter.ts'

/**
 * Of which keys there was more than one record. One of any other key is what the store has of it, and needs
 * not be looked for there. Takes the same memory however many there are: when it is full, it begins anew with
 * what is written from then on.
 */
export class Overwritten {
  #keys = new KeyFilter(filterBits)
  #count = 0
  /** What is at lower offsets isn't known. */
  #from: number
  #end: number

  /** @param from from this offset on nothing is known yet */
  constructor(from: number) {
    this.#from = from
    this.#end = from
  }

  /** There is a record of the key at the offset; `isFirst`: nothing was held of it before. */
  keep(key: string, offset: number, isFirst: boolean): void {
    this.#end = Math.max(this.#end, offset + 1)
    if (isFirst) return
    if (this.#count === mostKeys) {
      this.#keys = new KeyFilter(filterBits)
      this.#count = 0
      this.#from = this.#end
    }
    this.#count++
    this.#keys.add(key)
  }

  /** False: the record at the offset is the only one of its key. */
  mayHold(key: string, offset: number): boolean {
    return offset < this.#from || this.#keys.mayHold(key)
  }
}

/** 64 KiB: an eighth of the keys that it doesn't have is taken for those that it has, when it is full. */
const filterBits = 2 ** 19
const mostKeys = 2 ** 16
