import { Field } from '../../message/canonical-fields.ts'
import type { FieldPlaces } from '../../message/field-places.ts'
import { type Outline, outlineOf } from '../../message/message-outline.ts'
import { CanonicalItems } from './canonical-item.ts'
import { type CheckedItem, checkItem, type ItemContext, type Items } from './item.ts'
import { maxMessageBytes } from './request-limits.ts'

/**
 * The messages of a request whose body was scanned. If a message is in canonical form (as JSON.stringify
 * writes it), it is completed from its bytes if `CanonicalItems` can do that. All other messages are
 * completed from their outlines.
 */
export class ScannedItems implements Items {
  readonly #bytes: Buffer
  readonly #places: FieldPlaces
  /** Two numbers for each message: the place of its first byte, and the place after its last byte. */
  readonly #ranges: number[] = []
  // Most requests need none of these, and it would take a noticeable part of a single call to make them.
  /** The texts of the messages that were respelled, by index. */
  #respelled: Map<number, string> | undefined
  /** The indexes of messages that had NaN or an infinity. */
  #spoiled: Set<number> | undefined
  #outlines: Map<number, Outline | undefined> | undefined
  readonly #generation: number
  outlined = 0
  #completing: { readonly surroundings: ItemContext; readonly items: CanonicalItems } | undefined

  /**
   * `places`: the places of the fields of each message. For messages that were respelled, they are incomplete
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

  addScanned(start: number, end: number): void {
    this.#ranges.push(start, end)
  }

  /** Adds a value that was respelled. `isSpoiled`: it had NaN or an infinity. */
  addRespelled(text: string, isSpoiled: boolean): void {
    this.#respelled ??= new Map()
    this.#respelled.set(this.length, text)
    if (isSpoiled) {
      this.#spoiled ??= new Set()
      this.#spoiled.add(this.length)
    }
    this.#ranges.push(0, 0)
  }

  /** Adds a message that is too large, and of which nothing was read. */
  addTooLarge(): void {
    this.#ranges.push(0, Infinity)
  }

  check(index: number, surroundings: ItemContext): CheckedItem {
    if (this.#spoiled?.has(index) === true) return notJson
    if (this.#isTooLarge(index)) return tooLarge
    const short = this.#respelled?.has(index) === true ? undefined : this.#complete(index, surroundings)
    if (short !== undefined) return short
    this.outlined++
    return checkItem(this.outlineAt(index), surroundings)
  }

  outlineAt(index: number): Outline | undefined {
    this.#outlines ??= new Map()
    if (this.#outlines.has(index)) return this.#outlines.get(index)
    if (this.#endOf(index) === Infinity) return undefined
    if (this.#isTooLarge(index)) return { messageId: this.#placesOf(index).valueOf(Field.messageId) }
    const text =
      this.#respelled?.get(index) ?? this.#bytes.toString('utf8', this.#startOf(index), this.#endOf(index))
    const outline = text.startsWith('{') ? outlineOf(text) : undefined
    this.#outlines.set(index, outline)
    return outline
  }

  #complete(index: number, surroundings: ItemContext): CheckedItem | undefined {
    if (this.#completing?.surroundings !== surroundings) {
      this.#completing = { surroundings, items: new CanonicalItems(surroundings) }
    }
    const places = this.#placesOf(index)
    return this.#completing.items.complete({
      bytes: this.#bytes,
      start: this.#startOf(index),
      end: this.#endOf(index),
      places,
    })
  }

  #placesOf(index: number): FieldPlaces {
    if (this.#places.generation !== this.#generation) throw new Error('another body was scanned meanwhile')
    this.#places.select(index)
    return this.#places
  }

  /**
   * Returns true if a message is canonical, and longer than a message may be. Then nothing else of it is
   * looked at: to do so would cost more than to scan it.
   */
  #isTooLarge(index: number): boolean {
    return this.#endOf(index) - this.#startOf(index) > maxMessageBytes
  }

  #startOf(index: number): number {
    return this.#ranges[2 * index] ?? 0
  }

  #endOf(index: number): number {
    return this.#ranges[2 * index + 1] ?? 0
  }
}

/** The outcome for a message that contained NaN or Infinity. */
const notJson = { ok: false, reason: 'not_json' } as const

const tooLarge = { ok: false, reason: 'message_too_large' } as const
