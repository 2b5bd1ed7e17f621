import { KeyFilter } from './key-filter.ts'

/**
 * A filter that remembers which keys have had more than one record. If a key has had only one record, the
 * key's entry in the store has the content of this record. So when the record is read, the store doesn't have
 * to be asked. The size of the filter is constant. When the filter is full, it is cleared, and from then on
 * it covers only later records.
 */
export class Overwritten {
  #keys = new KeyFilter(filterBits)
  #count = 0
  /** The offset below which the filter has no information. */
  #from: number
  #end: number

  /**
   * @param from The offset from which records are reported to `keep`. The filter has no information about
   * records with lower offsets.
   */
  constructor(from: number) {
    this.#from = from
    this.#end = from
  }

  /** Remembers that the key has a record at the offset. `isFirst`: true if the key had no entry before. */
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

  /** Returns false if the record at the offset is certainly the only record of its key. */
  mayHold(key: string, offset: number): boolean {
    return offset < this.#from || this.#keys.mayHold(key)
  }
}

/** The size of the filter: 64 KiB. When it is full, it wrongly reports one in eight unknown keys as known. */
const filterBits = 2 ** 19
const mostKeys = 2 ** 16
