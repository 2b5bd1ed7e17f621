/**
 * Why a mapping can't be used (`path`: where in the mapping), or why it makes nothing of a message. The texts
 * contain nothing of a message.
 */
export class MappingFault extends Error {
  readonly path: readonly (string | number)[]
  readonly advice: string

  constructor(path: readonly (string | number)[], problem: string, advice: string) {
    super(problem)
    this.path = path
    this.advice = advice
  }
}

/** Counts the steps that a mapping takes for one message. */
export class Steps {
  #left: number
  readonly #most: number

  constructor(most: number) {
    this.#most = most
    this.#left = most
  }

  /** Throws if all steps are taken. */
  take(count: number): void {
    this.#left -= count
    if (this.#left < 0)
      throw new MappingFault([], `takes more than ${this.#most} steps for this message`, 'map less of it')
  }
}
