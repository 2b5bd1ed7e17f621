/**
 * Things of which something may hold, so that nobody has to look at all that there are. A thing is noted when
 * it may begin to hold. A look forgets those of which it doesn't hold.
 */
export class Noted<T> {
  readonly #noted = new Set<T>()

  note(thing: T): void {
    this.#noted.add(thing)
  }

  /** Returns the noted things of which something holds, and forgets the others. */
  those(holds: (thing: T) => boolean): readonly T[] {
    for (const thing of this.#noted) if (!holds(thing)) this.#noted.delete(thing)
    return [...this.#noted]
  }
}
