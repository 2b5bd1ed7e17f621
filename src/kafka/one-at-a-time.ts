/**
 * Runs some work, but never twice at the same time. A caller that comes during a run waits for the next run,
 * because the present run may miss what has changed since it began. All such callers share the next run.
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
