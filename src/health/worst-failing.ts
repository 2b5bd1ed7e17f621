import type { FailingFacts } from './hook-answers.ts'

/** The most destinations that are named at a time. */
const most = 10
/** A destination that fails for a shorter time, in milliseconds, isn't named. Most failures are over soon. */
const fromMs = 5 * 60_000
/** A destination that is named stays so until another one has this much more failed requests. */
const staysFactor = 2

/** Chooses the few destinations that fail most, so that metrics can name them without a series for each. */
export class WorstFailing {
  #named: ReadonlySet<string> = new Set()

  /** Returns the destinations to name, and for how many milliseconds each has failed. */
  choose(failing: ReadonlyMap<string, FailingFacts>, nowMs: number): ReadonlyMap<string, number> {
    const worst = [...failing]
      .map(([id, facts]) => ({ id, forMs: nowMs - sinceOf(facts), weight: this.#weightOf(id, facts) }))
      .filter(({ forMs }) => forMs >= fromMs)
      .toSorted((one, other) => other.weight - one.weight || other.forMs - one.forMs)
      .slice(0, most)
    this.#named = new Set(worst.map(({ id }) => id))
    return new Map(worst.map(({ id, forMs }) => [id, forMs]))
  }

  #weightOf(id: string, { hooks }: FailingFacts): number {
    const requests = hooks
      .flatMap(({ answers }) => Object.values(answers))
      .reduce((sum, many) => sum + many, 0)
    return this.#named.has(id) ? staysFactor * requests + 1 : requests
  }
}

function sinceOf({ hooks }: FailingFacts): number {
  return Math.min(...hooks.map(({ sinceMs }) => sinceMs))
}
