/**
 * Runs a function, but never twice at the same time. A caller that comes during a run waits for the next run.
 * The present run may not see what has changed since its start. All such callers share the next run.
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
