import type { CheckedItem, ItemContext } from './item.ts'

/** The messages of a request, in their order. */
export type Items = {
  readonly length: number
  /**
   * Returns the result of `checkItem` for a message. If the message contained NaN or Infinity, returns the
   * reason `not_json` instead.
   */
  check(index: number, surroundings: ItemContext): CheckedItem
  /** Returns the parsed message. */
  valueAt(index: number): unknown
}
