import { type CheckedItem, checkItem, type ItemContext } from './item.ts'
import type { Items } from './items.ts'

/** The messages of a request that was parsed as a whole. */
export class ParsedItems implements Items {
  readonly #items: readonly unknown[]
  readonly #spoiled: ReadonlySet<number>

  /** `spoiled`: the indexes of messages that had NaN or Infinity. */
  constructor(items: readonly unknown[], spoiled: ReadonlySet<number>) {
    this.#items = items
    this.#spoiled = spoiled
  }

  get length(): number {
    return this.#items.length
  }

  check(index: number, surroundings: ItemContext): CheckedItem {
    return this.#spoiled.has(index) ? notJson : checkItem(this.#items[index], surroundings)
  }

  valueAt(index: number): unknown {
    return this.#items[index]
  }
}

/** The outcome for a message that contained NaN or Infinity. */
const notJson = { ok: false, reason: 'not_json' } as const
