import { Fifo } from '../async/fifo.ts'

/**
 * Changes that wait to be made. Their authors take turns, so that a change of one author doesn't wait until a
 * burst of another one is over.
 */
export class WaitingChanges<C extends { readonly by: string }> {
  readonly #byAuthor = new Map<string, Fifo<C>>()

  get areNone(): boolean {
    return this.#byAuthor.size === 0
  }

  add(change: C): void {
    const queue = this.#byAuthor.get(change.by) ?? new Fifo()
    queue.push(change)
    this.#byAuthor.set(change.by, queue)
  }

  /** Removes the next changes, at most `most`, and returns them. */
  take(most: number): readonly C[] {
    const taken: C[] = []
    // An author who has more changes is put at the end, and the loop comes to them again.
    for (const [by, queue] of this.#byAuthor) {
      const change = queue.shift()
      this.#byAuthor.delete(by)
      if (queue.length > 0) this.#byAuthor.set(by, queue)
      if (change !== undefined) taken.push(change)
      if (taken.length === most) break
    }
    return taken
  }
}
