import { KeyFilter } from './key-filter.ts'

/**
 * Remembers which keys have had more than one record. If a key has had only one record, the key's entry in
 * the store has the content of that record. So whoever reads the record need not ask the store. The filter's
 * size is constant: when the filter is full, it is cleared, and then covers only later records.
 */
export class Overwritten {
  #keys = new KeyFilter(filterBits)
  #count = 0
  /** The offset below which the filter knows nothing. */
  #from: number
  #end: number

  /**
   * @param from The offset from which records are reported to `keep`. Nothing is known about the records
   * below it.
   */
  constructor(from: number) {
    this.#from = from
    this.#end = from
  }

  /** Notes a record of the key at the offset. `isFirst`: the key had no entry before. */
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

  /** Returns false if the record at the offset is the only one of its key. */
  mayHold(key: string, offset: number): boolean {
    return offset < this.#from || this.#keys.mayHold(key)
  }
}

/** The size of the filter: 64 KiB. When it is full, it wrongly reports one in eight unknown keys as known. */
const filterBits = 2 ** 19
const mostKeys = 2 ** 16
