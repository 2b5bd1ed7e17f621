import type { CheckedItem, ItemContext } from './item.ts'

/** The messages of a request, in their order. */
export type Items = {
  readonly length: number
  /**
   * Returns the same as `checkItem` returns for a message, or the reason `not_json` if the message contained
   * NaN or Infinity.
   */
  check(index: number, surroundings: ItemContext): CheckedItem
  /** Returns the parsed message. */
  valueAt(index: number): unknown
}
