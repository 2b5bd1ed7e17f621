/** Does something with the results of promises, for each key in the order in which the promises came. */
export class InOrder {
  /** What was done last for each key, until all of the key is done. */
  readonly #last = new Map<string, Promise<void>>()

  /** True while something of this key isn't done. */
  has(key: string): boolean {
    return this.#last.has(key)
  }

  /** Calls `then` with a result, once all that came before it is done. An error ends the process. */
  add<T>(key: string, result: Promise<T>, then: (result: T) => void): void {
    const own = this.#follow(this.#last.get(key), result, then).finally(() => {
      if (this.#last.get(key) === own) this.#last.delete(key)
    })
    this.#last.set(key, own)
  }

  async #follow<T>(before: Promise<void> | undefined, result: Promise<T>, then: (result: T) => void) {
    const known = await result
    await before
    then(known)
  }
}
