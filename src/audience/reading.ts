import type { Entry } from './entry.ts'
import type { KeyFilter } from './key-filter.ts'
import type { Ledger } from './ledger.ts'
import type { PropertyStateKey } from './property-state.ts'
import type { StateStore } from './store.ts'
import { deletionKeyOf } from './store-keys.ts'

/** The place of an item for which the store wasn't asked. */
export const unread = -1
/** The place of an item whose key has had only this one record. Then the store has what the record says. */
export const sameAsRead = -2

/**
 * Reads the keys that one turn of a unit needs. All texts of the store are read at once. Entries of the
 * ledger that aren't stored yet take precedence over these texts. Collect keys with `add`, `want` and
 * `wantFloor`, call `read` once, then query.
 */
export class Reading {
  readonly #ledger: Ledger
  readonly #deletions: KeyFilter
  readonly #keys: string[] = []
  #texts: readonly (string | undefined)[] = []
  /** Places of the keys that are looked up by name. */
  readonly #places = new Map<string, number>()

  constructor(ledger: Ledger, deletions: KeyFilter) {
    this.#ledger = ledger
    this.#deletions = deletions
  }

  /**
   * Asks for a key that mostly occurs once in a turn. Returns the place at which `at` finds the key's text.
   */
  add(key: string): number {
    return this.#keys.push(key) - 1
  }

  /**
   * Asks for a key that several items need, or that is looked up by its name. The store is asked for it once.
   */
  want(key: string): void {
    if (!this.#places.has(key)) this.#places.set(key, this.add(key))
  }

  /** Asks for the deletion floor of a user, if there may be one. */
  wantFloor(stateKey: Pick<PropertyStateKey, 'userId' | 'spaceId'>): void {
    if (this.#deletions.isEmpty) return
    const key = deletionKeyOf(stateKey)
    if (this.#deletions.mayHold(key)) this.want(key)
  }

  async read(store: StateStore): Promise<void> {
    if (this.#keys.length > 0) this.#texts = await store.getMany(this.#keys)
  }

  /** Returns the store's text at a place that `add` returned. */
  at(place: number): string | undefined {
    return this.#texts[place]
  }

  /**
   * Returns the newest acknowledged entry of a wanted key that the ledger or the store has. It may not cover
   * a write that is in flight.
   */
  entry(key: string): Entry | undefined {
    return this.#ledger.held(key, this.#textOf(key))
  }

  /**
   * Returns the entry of a wanted key that Kafka has acknowledged, even while a newer write of the key is in
   * flight.
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
