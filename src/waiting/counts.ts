/** Counts by code. A code that was counted down to 0 takes no memory. */
export class Counts {
  readonly #counts = new Map<number, number>()

  get isEmpty(): boolean {
    return this.#counts.size === 0
  }

  of(code: number): number {
    return this.#counts.get(code) ?? 0
  }

  add(code: number, count: number): void {
    const sum = this.of(code) + count
    if (sum > 0) this.#counts.set(code, sum)
    else this.#counts.delete(code)
  }
}
