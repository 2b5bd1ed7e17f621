import type { Entry } from './entry.ts'
import type { KeyFilter } from './key-filter.ts'
import type { Ledger } from './ledger.ts'
import type { StateStore } from './store.ts'
import { deletionKeyOf } from './store-keys.ts'
import type { PropertyStateKey } from '../records/version.ts'

/** The `place` of an item whose key isn't read from the store. */
export const unread = -1
/**
 * The `place` of an item whose key has had only one record. The item's record already has the content that
 * the store has for the key, so the key isn't read.
 */
export const sameAsRead = -2

/**
 * Reads the entries that a unit needs for one turn. A turn processes a batch of waiting records. The store is
 * asked for all keys at once. Entries of the ledger that aren't stored yet take precedence over the entries
 * in the store. First collect keys with `add`, `want` and `wantFloor`. Then call `read` once. Then use the
 * other methods.
 */
export class Reading {
  readonly #ledger: Ledger
  readonly #deletions: KeyFilter
  readonly #keys: string[] = []
  #texts: readonly (string | undefined)[] = []
  /** The places of the keys that were added by `want`. */
  readonly #places = new Map<string, number>()

  constructor(ledger: Ledger, deletions: KeyFilter) {
    this.#ledger = ledger
    this.#deletions = deletions
  }

  /**
   * Adds a key that most likely occurs only once in a turn. Returns a number, by which `at` finds the key's
   * text.
   */
  add(key: string): number {
    return this.#keys.push(key) - 1
  }

  /**
   * Adds a key that several items need, or that `entry` or `acknowledged` will look up. The key is read from
   * the store only once.
   */
  want(key: string): void {
    if (!this.#places.has(key)) this.#places.set(key, this.add(key))
  }

  /** Adds the key of a user's deletion floor, if the user may have one. */
  wantFloor(stateKey: Pick<PropertyStateKey, 'userId' | 'spaceId'>): void {
    if (this.#deletions.isEmpty) return
    const key = deletionKeyOf(stateKey)
    if (this.#deletions.mayHold(key)) this.want(key)
  }

  async read(store: StateStore): Promise<void> {
    if (this.#keys.length > 0) this.#texts = await store.getMany(this.#keys)
  }

  /** Returns the text that the store has for a key. `place` is the number that `add` returned for the key. */
  at(place: number): string | undefined {
    return this.#texts[place]
  }

  /**
   * Returns the last acknowledged entry of a key, from the ledger or the store. The key must have been added
   * with `want`.
   * Don't call this method for a key with a write in flight.
   */
  entry(key: string): Entry | undefined {
    return this.#ledger.held(key, this.#textOf(key))
  }

  /**
   * Returns the last acknowledged entry of a key, even while a newer write of the key is in flight. `want`
   * must have added the key.
   */
  acknowledged(key: string): Entry | undefined {
    return this.#ledger.acknowledged(key, this.#textOf(key))
  }

  /**
   * Returns the time up to which a user's data in a space is deleted, in epoch milliseconds; -Infinity if
   * nothing is deleted. Call `wantFloor` first.
   */
  deletedUpToMs(stateKey: Pick<PropertyStateKey, 'userId' | 'spaceId'>): number {
    if (this.#deletions.isEmpty) return -Infinity
    const floor = this.entry(deletionKeyOf(stateKey))
    return floor?.kind === 'deletion' ? floor.state.requestedAtMs : -Infinity
  }

  #textOf(key: string): string | undefined {
    const place = this.#places.get(key)
    return place === undefined ? undefined : this.#texts[place]
  }
}
