import type { CheckedItem, ItemContext } from './item.ts'

/** The messages of a request, in their order. */
export type Items = {
  readonly length: number
  /**
   * Returns the same as `checkItem` for a message. But if the message contained NaN or Infinity, returns the
   * reason `not_json`.
   */
  check(index: number, surroundings: ItemContext): CheckedItem
  /** Returns the parsed message. */
  valueAt(index: number): unknown
}
