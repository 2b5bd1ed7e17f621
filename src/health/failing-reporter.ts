import type { FailingWord, HealthRecord } from './health-record.ts'
import { wordLastsMs } from './reporter.ts'

/** What is to be written about the destinations that fail. */
export type FailingReport = {
  readonly records: readonly HealthRecord[]
  /** The number of destinations that fail, and of those that are too many to be told. */
  readonly failing: number
  readonly untold: number
}

type Told = { word: FailingWord; writtenMs: number }

/** The most destinations of which a process tells that they fail. */
export const mostTold = 1_000
/** The counts of so many of the worst are told anew every minute. Those of the others are older. */
const mostRenewed = 100
const renewedAfterMs = 60_000
/** If a breaker opens and closes again and again, a word isn't written more often than this. */
const leastMs = 15_000
/** A destination that is told stays so until another one fails this much more. */
const staysFactor = 2

/**
 * Decides what a process writes about destinations that fail: when one begins to fail or works again, when
 * its breaker opens or closes, and for the worst ones the counts of each minute. While all work, it writes
 * nothing. All times are epoch milliseconds.
 */
export class FailingReporter {
  readonly #writer: string
  readonly #told = new Map<string, Told>()
  /** What the last report has taken back. It may not have been written. */
  #takenBack: readonly string[] = []

  constructor(writer: string) {
    this.#writer = writer
  }

  report(failing: ReadonlyMap<string, FailingWord>, nowMs: number): FailingReport {
    const worst = [...failing]
      .map(([id, word]) => ({ id, word, weight: this.#weightOf(id, word) }))
      .toSorted((a, b) => b.weight - a.weight || sinceOf(a.word) - sinceOf(b.word))
      .slice(0, mostTold)
    const told = new Set(worst.map(({ id }) => id))
    this.#takenBack = [...this.#told.keys()].filter((id) => !told.has(id))
    for (const id of this.#takenBack) this.#told.delete(id)
    const records = worst.flatMap(({ id, word }, rank) =>
      this.#isDue(this.#told.get(id), word, { rank, nowMs }) ? [this.#write(id, word, nowMs)] : [],
    )
    return {
      records: [...this.#takenBack.map((id) => this.#recordOf(id, undefined)), ...records],
      failing: failing.size,
      untold: failing.size - worst.length,
    }
  }

  /** Returns the records that take back everything, because the process stops. */
  end(): readonly HealthRecord[] {
    const records = [...this.#told.keys()].map((id) => this.#recordOf(id, undefined))
    this.#told.clear()
    return records
  }

  /** Forgets what was told, because it may not have been written. */
  forget(): void {
    for (const id of [...this.#told.keys(), ...this.#takenBack]) this.#told.set(id, never)
  }

  #weightOf(id: string, { hooks }: FailingWord): number {
    const answers = hooks.flatMap((hook) => Object.values(hook.answers))
    const requests = answers.reduce((sum, many) => sum + many, 0)
    return this.#told.has(id) ? staysFactor * requests + 1 : requests
  }

  #isDue(
    told: Told | undefined,
    word: FailingWord,
    { rank, nowMs }: { readonly rank: number; readonly nowMs: number },
  ): boolean {
    if (told === undefined) return true
    const ageMs = nowMs - told.writtenMs
    if (ageMs >= wordLastsMs) return true
    if (stateOf(told.word) !== stateOf(word)) return ageMs >= leastMs
    return rank < mostRenewed && ageMs >= renewedAfterMs
  }

  #write(id: string, word: FailingWord, nowMs: number): HealthRecord {
    this.#told.set(id, { word, writtenMs: nowMs })
    return this.#recordOf(id, word)
  }

  #recordOf(destinationId: string, word: FailingWord | undefined): HealthRecord {
    return { kind: 'failing', destinationId, writer: this.#writer, word }
  }
}

const never: Told = { word: { hooks: [] }, writtenMs: -Infinity }

function sinceOf({ hooks }: FailingWord): number {
  return Math.min(...hooks.map(({ sinceMs }) => sinceMs))
}

/**
 * Returns a text that changes when another hook fails, a breaker opens or closes, or a login fails or works.
 */
function stateOf({ hooks }: FailingWord): string {
  return hooks
    .map(({ hook, isOpen, loginProblem }) => `${hook} ${isOpen} ${loginProblem !== undefined}`)
    .join(' ')
}
