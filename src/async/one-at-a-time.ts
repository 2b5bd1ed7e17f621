/**
 * Calls a function, but never twice at the same time. If callers come while a call is under way, they share
 * the next call and wait for it. They can't share the present call, because it may not see the latest
 * changes.
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
