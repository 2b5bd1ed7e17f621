/** Functions that are called with each change, in the order in which they were added. */
export class Listeners<A extends readonly unknown[]> {
  readonly #listeners: ((...args: A) => void)[] = []

  add(listener: (...args: A) => void): void {
    this.#listeners.push(listener)
  }

  tell(...args: A): void {
    for (const listener of this.#listeners) listener(...args)
  }
}
