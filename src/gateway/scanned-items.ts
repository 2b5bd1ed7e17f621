import type { FieldPlaces } from '../message/field-places.ts'
import { parseJson } from '../message/json.ts'
import { CanonicalItems } from './canonical-item.ts'
import { type CheckedItem, checkItem, type ItemContext } from './item.ts'
import type { Items } from './items.ts'

/**
 * The messages of a request whose body was scanned. If a message is in canonical form (as JSON.stringify
 * writes it), it is parsed only if `CanonicalItems` can't complete it. All other messages were parsed during
 * the scan.
 */
export class ScannedItems implements Items {
  readonly #bytes: Buffer
  readonly #places: FieldPlaces
  /** Two numbers for each message: the place of its first byte, and the place after its last byte. */
  readonly #ranges: number[] = []
  /** The messages that were parsed, by index. */
  readonly #parsed = new Map<number, unknown>()
  readonly #generation: number
  #completing: { readonly surroundings: ItemContext; readonly items: CanonicalItems } | undefined

  /**
   * `places`: the places of the fields of each message. For messages that were parsed, they are incomplete
   * and aren't used.
   */
  constructor(bytes: Buffer, places: FieldPlaces) {
    this.#bytes = bytes
    this.#places = places
    this.#generation = places.generation
  }

  get length(): number {
    return this.#ranges.length / 2
  }

  /** Adds a message that was scanned. */
  addScanned(start: number, end: number): void {
    this.#ranges.push(start, end)
  }

  /** Adds a message that was parsed. */
  addParsed(start: number, end: number, value: unknown): void {
    this.#parsed.set(this.length, value)
    this.#ranges.push(start, end)
  }

  check(index: number, surroundings: ItemContext): CheckedItem {
    const short = this.#parsed.has(index) ? undefined : this.#complete(index, surroundings)
    return short ?? checkItem(this.valueAt(index), surroundings)
  }

  valueAt(index: number): unknown {
    if (this.#parsed.has(index)) return this.#parsed.get(index)
    const parsed = parseJson(this.#bytes.toString('utf8', this.#startOf(index), this.#endOf(index)))
    const value = parsed.ok ? parsed.value : undefined
    this.#parsed.set(index, value)
    return value
  }

  #complete(index: number, surroundings: ItemContext): CheckedItem | undefined {
    if (this.#completing?.surroundings !== surroundings) {
      this.#completing = { surroundings, items: new CanonicalItems(surroundings) }
    }
    if (this.#places.generation !== this.#generation) throw new Error('another body was scanned meanwhile')
    this.#places.select(index)
    return this.#completing.items.complete({
      bytes: this.#bytes,
      start: this.#startOf(index),
      end: this.#endOf(index),
      places: this.#places,
    })
  }

  #startOf(index: number): number {
    return this.#ranges[2 * index] ?? 0
  }

  #endOf(index: number): number {
    return this.#ranges[2 * index + 1] ?? 0
  }
}
