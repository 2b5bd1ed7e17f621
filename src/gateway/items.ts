import type { Outline } from '../message/outline.ts'
import type { CheckedItem, ItemContext } from './item.ts'

/** The messages of a request, in their order. */
export type Items = {
  readonly length: number
  /**
   * Returns the same as `checkItem` for a message. But if the message contained NaN or Infinity, returns the
   * reason `not_json`.
   */
  check(index: number, surroundings: ItemContext): CheckedItem
  /** Returns the outline of a message, or `undefined` if it is no object. */
  outlineAt(index: number): Outline | undefined
}
