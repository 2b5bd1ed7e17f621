import type { CheckedItem, ItemContext } from './item.ts'

/** The messages of a request, in their order. */
export type Items = {
  readonly length: number
  /** Returns what `checkItem` returns for a message, or `not_json` if it had NaN or Infinity. */
  check(index: number, surroundings: ItemContext): CheckedItem
  /** Returns a message as JSON.parse reads it. */
  valueAt(index: number): unknown
}
