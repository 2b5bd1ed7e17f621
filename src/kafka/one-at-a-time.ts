/**
 * Runs a function, but never twice at the same time. The present run may not see what has changed since its
 * start. So a caller that comes during a run waits for one further run, which all these callers share.
 */
export class OneAtATime {
  readonly #work: () => Promise<void>
  #underWay: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  run(): Promise<void> {
    if (this.#underWay === undefined) {
      this.#underWay = this.#work().finally(() => {
        this.#underWay = undefined
      })
      return this.#underWay
    }
    this.#next ??= this.#underWay
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        return this.run()
      })
    return this.#next
  }
}
